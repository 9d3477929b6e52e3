"""The page at `/`; web/test/serve.test.mjs drives it in a browser."""

import base64
import hashlib
import re

from tests.serve.factories import RunningServer


def test_the_policy_allows_the_page_s_own_program_and_style_only(server: RunningServer) -> None:
    with server.client() as client:
        answer = client.get("/")
        assert "/" not in client.get("/openapi.json").json()["paths"]
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_look_page_policy_allows_its_own_two_programs_only(server: RunningServer) -> None:
    with server.client() as client:
        answer = client.get("/look")
        assert "/look" not in client.get("/openapi.json").json()["paths"]
    assert answer.status_code == 200
    programs = re.findall(r"<script(?: type=\"text/plain\" id=\"program\")?>(.*?)</script>", answer.text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(program.encode()).digest()).decode() for program in programs]
    policy = answer.headers["content-security-policy"]
    assert f"script-src 'sha256-{digests[1]}' 'sha256-{digests[0]}';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy
