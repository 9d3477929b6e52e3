"""Code, equations and numbers of the lectures, compared with Regard."""
