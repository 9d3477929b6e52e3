"""H1: requests that fit the description of the routes, or nearly: no answer of a defect, and no growth."""

import json
import random
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.faults.verdict import Verdict
from tests.load.client import Answer, ask, ask_all, get, make_request
from tests.load.server import Server

REQUESTS, QUICK_REQUESTS = 50_000, 1000
WARM_UP = 5000
PART = 500  # requests that are made and sent at a time
CLIENTS = 32
MAX_GROWTH = 0.05
BOUNDARY = "b0undary"
CHARSETS = ["", "; charset=utf-8", "; charset=utf-7", "; charset=undefined", "; charset=idna", "; charset=x"]

texts = st.one_of(
    st.sampled_from(["", " ", "Two dogs.", "a\x00b", "\u2028", "ﷺ" * 50, "😀" * 9, "1. a\n\n2. b", "<b>", "&#x0;"]),
    st.text(max_size=40),
    st.builds(lambda unit, count: unit * count, st.text(min_size=1, max_size=8), st.integers(1, 300)),
)
odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([0, 1, -1, 2**31, 2**63, 1e-300, 1e-45, 5e-324, 0.5, 1e308, "\ud800", "0", "nan", "a" * 3000]),
    texts,
    st.lists(st.one_of(texts, st.integers(), st.none()), max_size=70),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)


flags = st.booleans()
TRANSLATE: dict[str, st.SearchStrategy[Any]] = {
    "source": st.sampled_from(["auto", "en", "de", ""]),
    "target": st.sampled_from(["de", "", "en", "xx"]),
    "format": st.sampled_from(["text", "html"]),
    "alternatives": st.integers(0, 8),
    "model": st.sampled_from(["en-de", "writer", "encoder", "none", None]),
    "beam_size": st.sampled_from([None, 1, 1, 2, 16, 17]),
    "prefix": texts,
    "required": st.lists(texts, max_size=5),
    "forbidden": st.lists(texts, max_size=5),
    "scores": flags,
    "tokens": flags,
    "alignment": flags,
    "confidence": flags,
    "explain": st.sampled_from([False, False, False, False, True]),
    "stream": flags,
}
GENERATE: dict[str, st.SearchStrategy[Any]] = {
    "temperature": st.one_of(st.floats(0, 2), st.sampled_from([0, 1, 1e-300, 5e-324, 1e-40, 2])),
    "top_p": st.one_of(st.floats(0, 1), st.sampled_from([1e-300, 5e-324, 1, 0.5])),
    "n": st.integers(1, 9),
    "stream": flags,
    "stop": st.one_of(texts, st.lists(texts, max_size=5)),
    "seed": st.integers(-(2**63), 2**63 - 1),
    "max_tokens": st.sampled_from([1, 2, 16, 30]),
    "top_k": st.sampled_from([None, 1, 5, 10**9]),
    "min_p": st.one_of(st.none(), st.floats(0, 1), st.sampled_from([5e-324, 1])),
    "repetition_penalty": st.one_of(st.floats(0, 10), st.sampled_from([1e-300, 5e-324, 10])),
    "beam_size": st.sampled_from([None, None, 1, 2, 16]),
    "logprobs": st.integers(0, 6),
    "echo": flags,
}
one_or_many = st.one_of(texts, st.lists(texts, max_size=3))
parts = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=2)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "system", "assistant", "tool", "developer"])},
        optional={"content": st.one_of(texts, parts)},
    ),
    min_size=1,
    max_size=3,
)
ROUTES: dict[str, tuple[dict[str, st.SearchStrategy[Any]], dict[str, st.SearchStrategy[Any]]]] = {
    "/translate": ({"q": one_or_many}, TRANSLATE),
    "/v1/completions": ({"model": st.just("writer"), "prompt": one_or_many}, GENERATE),
    "/v1/chat/completions": ({"model": st.just("writer"), "messages": messages}, GENERATE),
    "/v1/embeddings": (
        {"model": st.just("encoder"), "input": one_or_many},
        {"encoding_format": st.sampled_from(["float", "base64"])},
    ),
    "/detect": ({"q": texts}, {}),
}


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Return a route and a body that fits; in half of them one or two fields have any value."""
    path = draw(st.sampled_from(list(ROUTES)))
    required, optional = ROUTES[path]
    names = draw(st.sets(st.sampled_from(list(optional)), max_size=5)) if optional else set()
    body = {name: draw(strategy) for name, strategy in required.items()}
    body |= {name: draw(optional[name]) for name in sorted(names)}
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        body[draw(st.sampled_from([*required, *optional]))] = draw(odd)
    return path, body


file_names = st.one_of(
    st.sampled_from(["a.txt", "a.md", "a.html", "a.srt", "a.vtt", "a", "", "../../b.txt", "a.exe", "ä😀.txt", ".md"]),
    st.text(max_size=12).map(lambda name: name + ".txt"),
)
file_contents = st.one_of(
    st.binary(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "<",
                ">",
                "<!--",
                "-->",
                "<script>",
                "</b>",
                "\n",
                "\r",
                "# ",
                "- ",
                "a b. C",
                "&amp;",
                "1\n00:00:01,000 --> 2\n",
            ]
        ),
        max_size=30,
    ).map(lambda parts: "".join(parts).encode()),
)


def encode_json(content: Any) -> bytes:
    return json.dumps(content).encode()  # NaN, Infinity and lone surrogates included: clients send them


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Return the bytes of one request."""
    kind = draw(st.integers(0, 9))
    if kind <= 5:
        path, content = draw(bodies())
        return make_request("POST", path, encode_json(content), "application/json")
    if kind == 6:  # a form
        fields = draw(st.fixed_dictionaries({"q": one_or_many}, optional=TRANSLATE))
        form = urlencode({name: _as_form(value) for name, value in fields.items()}, doseq=True, errors="replace")
        return make_request("POST", "/translate", form.encode(), "application/x-www-form-urlencoded")
    if kind == 7:  # a form in parts
        values = draw(
            st.dictionaries(
                st.sampled_from(["q", "target", "format", "file", "api_key"]), st.binary(max_size=40), max_size=4
            )
        )
        parts = [
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value
            for name, value in values.items()
        ]
        body = b"\r\n".join([*parts, f"--{BOUNDARY}--\r\n".encode()])
        kind_of_body = f"multipart/form-data; boundary={BOUNDARY}{draw(st.sampled_from(CHARSETS))}"
        return make_request("POST", draw(st.sampled_from(["/translate", "/translate_file"])), body, kind_of_body)
    if kind == 8:
        name = draw(file_names).replace('"', "").replace("\r", "").replace("\n", "").encode("utf-8", "replace")
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="'.encode() + name
        body = head + b'"\r\n\r\n' + draw(file_contents) + f"\r\n--{BOUNDARY}--\r\n".encode()
        query = urlencode(
            {"target": draw(st.sampled_from(["de", "", "xx"])), "model": draw(st.sampled_from(["en-de", "writer"]))}
        )
        kind_of_body = f"multipart/form-data; boundary={BOUNDARY}{draw(st.sampled_from(CHARSETS))}"
        return make_request("POST", f"/translate_file?{query}", body, kind_of_body)
    path = draw(
        st.sampled_from(
            [
                "/v1/models",
                "/v1/models/{}",
                "/languages",
                "/health",
                "/ready",
                "/metrics",
                "/openapi.json",
                "/{}",
                "/reload/{}",
            ]
        )
    )
    method = draw(st.sampled_from(["GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]))
    return make_request(method, path.format(quote(draw(st.text(max_size=20)), safe="")))


def _as_form(value: Any) -> Any:
    return [str(item) for item in value] if isinstance(value, list) else str(value)


def generate(strategy: st.SearchStrategy[bytes], count: int, number: int) -> list[bytes]:
    """Return requests that hypothesis makes; each number gives others."""
    made: list[bytes] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(request: bytes) -> None:
        made.append(request)

    collect()
    return made[:count]


def generate_from_description(document: dict[str, Any], count: int, number: int) -> list[bytes]:
    """Return requests that schemathesis makes from the OpenAPI document; none if it is not installed."""
    try:
        import schemathesis
    except ImportError:
        return []
    schema: Any = schemathesis.openapi.from_dict(document)
    operations = [result.ok() for result in schema.get_all_operations()]
    strategy = st.one_of([operation.as_strategy().map(_encode_case) for operation in operations])
    return generate(strategy, count, number)


def _encode_case(case: Any) -> bytes:
    """Return the bytes of a case of schemathesis."""
    import requests

    options = case.as_transport_kwargs(base_url="http://127.0.0.1")
    prepared = requests.Request(
        **{
            name: options[name]
            for name in ("method", "url", "headers", "json", "data", "files", "params")
            if name in options
        }
    ).prepare()
    body: Any = prepared.body or b""
    content = body.encode() if isinstance(body, str) else bytes(body)
    headers: dict[str, Any] = {
        name: value
        for name, value in prepared.headers.items()
        if name.lower() not in ("content-length", "transfer-encoding", "host", "connection")
    }
    lines = [f"{prepared.method} {prepared.path_url} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(content)}"]
    head = "\r\n".join([*lines, *(f"{name}: {value!s}" for name, value in headers.items())])
    return head.encode("utf-8", "replace") + b"\r\n\r\n" + content


def recombine(made: list[bytes], count: int, source: random.Random) -> list[bytes]:
    """Return requests whose bodies take each field from one of two others: cheaper than new ones, and as odd."""
    groups: dict[bytes, list[dict[str, Any]]] = {}
    for request in made:
        head, _, body = request.partition(b"\r\n\r\n")
        if b"application/json" in head and body.startswith(b"{"):
            groups.setdefault(head.split(b" ")[1], []).append(json.loads(body))
    results = []
    for _ in range(count):
        path, bodies = source.choice([*groups.items()])
        first, second = source.choice(bodies), source.choice(bodies)
        fields = {
            name: source.choice([body for body in (first, second) if name in body])[name] for name in first | second
        }
        results.append(make_request("POST", path.decode(), encode_json(fields), "application/json"))
    return results


def check(request: bytes, answer: Answer) -> list[str]:
    """Return what is wrong with an answer."""
    if answer.status == 501:
        return [] if b"/detect" in request[:20] else ["501"]
    if answer.status == 503:
        return [] if "retry-after" in answer.headers else ["503 without Retry-After"]
    if not 200 <= answer.status < 500:
        return [f"status {answer.status}: {answer.body[:200]!r}"]
    if (
        answer.status == 200
        and request.startswith(b"POST /translate ")
        and answer.headers["content-type"] == "application/json"
    ):
        return [] if b'"translatedText"' in answer.body else ["no translation"]
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        return (
            [] if answer.body.endswith(b"data: [DONE]\n\n") else [f"a stream without its end: {answer.body[-200:]!r}"]
        )
    return []


async def prove(server: Server, quick: bool) -> Verdict:
    verdict = Verdict("H1", "structured requests were answered with a defect")
    document = (await ask(server.port, get("/openapi.json"))).json()
    count, statuses, memory = QUICK_REQUESTS if quick else REQUESTS, dict[int, int](), 0
    made_by_schemathesis, source, others = 0, random.Random(1), list[bytes]()
    for number in range(count // PART):
        if number % 5 == 0:
            made = generate(requests(), PART // 2 if quick else PART, number)
            others = made
        elif number % 25 == 1 and (made := generate_from_description(document, PART, number)):
            made_by_schemathesis += len(made)
        else:
            made = []
        made += recombine(others, PART - len(made), source)
        for request, answer in await ask_all(server.port, made, CLIENTS):
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            verdict.add_fault(repr(request[-400:]), check(request, answer))
        if (number + 1) * PART == WARM_UP:
            memory = server.figures.memory
    verdict.require("the server ended", server.is_alive)
    if memory:
        growth = server.figures.memory / memory - 1
        verdict.require(f"memory grew by {100 * growth:.1f} %", growth < MAX_GROWTH)
        verdict.notes.append(f"memory {100 * growth:+.1f} % after the first {WARM_UP:,}")
    verdict.notes.append("answers " + ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items())))
    if made_by_schemathesis:
        verdict.notes.append(f"{made_by_schemathesis:,} made by schemathesis")
    return verdict
