"""How long something takes, as people say it."""


def lasting(seconds: float) -> str:
    """A duration in two words.

    >>> lasting(42), lasting(130), lasting(3725), lasting(200_000)
    ('42 s', '2 min 10 s', '1 h 02 min', '2 d 07 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02} h"
