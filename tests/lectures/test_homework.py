"""Homework is compared with Regard: right modules in several styles pass, wrong ones are located."""

import os
import sys
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.lectures.homework import PARTS, check_file
from tests.commands import run_command

IMPORTS = "import math\nimport torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
ANNOTATED = Path(__file__).with_name("annotated.py")
FUSED = """
class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.out = nn.Linear(d_model, d_model, bias=False)
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)

    def forward(self, query, key, value, mask=None):
        b, t, d = query.shape
        q, k, v = (part.view(b, t, self.h, -1).transpose(1, 2) for part in self.qkv(query).chunk(3, dim=-1))
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
        return self.out(heads.transpose(1, 2).reshape(b, t, d))
"""
EINSUM = """
def attention(q, k, v, mask=None):
    scores = torch.einsum("bhtk,bhsk->bhts", q / math.sqrt(q.size(-1)), k)
    scores = scores + torch.where(mask, 0.0, -torch.inf)
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return torch.einsum("bhts,bhsk->bhtk", e / e.sum(-1, keepdim=True), v)

class MultiHeadedAttention(nn.Module):
    def __init__(self, heads, width, dropout=0.1):
        super().__init__()
        self.heads, self.drop = heads, nn.Dropout(dropout)
        self.w_o, self.w_v, self.w_k, self.w_q = (nn.Linear(width, width) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        split = lambda x: torch.stack(x.chunk(self.heads, dim=-1), dim=1)
        heads = attention(split(self.w_q(query)), split(self.w_k(key)), split(self.w_v(value)), mask[:, None])
        return self.w_o(torch.cat(heads.unbind(1), dim=-1))
"""
ATTENTION = """
def attention(query, key, value, mask=None, dropout=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    scores = scores.masked_fill(mask == 0, -1e9)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights
"""
MULTI_HEAD = """
class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])

    def split(self, x):
        return x.view(x.size(0), -1, self.h, x.size(-1) // self.h).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = (self.split(linear(x)) for linear, x in zip(self.linears, (query, key, value)))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        weights = scores.masked_fill(mask[:, None] == 0, -1e9).softmax(dim=-1)
        heads = weights @ v
        joined = heads.transpose(1, 2).flatten(-2)
        return self.linears[-1](joined)
"""
FEED_FORWARD = """
class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.w_1, self.w_2, self.dropout = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), nn.Dropout(dropout)

    def forward(self, x):
        return self.w_2(self.dropout(self.w_1(x).relu()))
"""
NORM = """
class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.a, self.b, self.eps = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features)), eps

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        return self.a * centered / (x.var(-1, keepdim=True, unbiased=False) + self.eps).sqrt() + self.b
"""
POSITIONS = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        angles = torch.arange(100)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        self.pe = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)

    def forward(self, x):
        return x + self.pe[: x.size(1)]
"""
EMBEDDINGS = """
class Embeddings(nn.Module):
    def __init__(self, d_model, vocab):
        super().__init__()
        self.table, self.d = nn.Embedding(vocab, d_model), d_model

    def forward(self, x):
        return self.table(x) * math.sqrt(self.d)
"""
SUBLAYER = """
class SublayerConnection(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(size), nn.Dropout(dropout)

    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))
"""
MASK = """
def subsequent_mask(size):
    return torch.ones(1, size, size).tril() == 1
"""
RIGHT = {
    "fused": FUSED,
    "einsum": EINSUM,
    "plain": ATTENTION + MULTI_HEAD + FEED_FORWARD + NORM + POSITIONS + EMBEDDINGS,
}
# What the student wrote instead, and where Regard's result first differs.
WRONG = {
    "no scale": (ATTENTION, " / math.sqrt(query.size(-1))", "", "scores q.k"),
    "softmax over queries": (ATTENTION, "dim=-1", "dim=-2", "attention weights"),
    "mask inverted": (ATTENTION, "mask == 0", "mask == 1", "attention weights"),
    "mask after the softmax": (
        ATTENTION,
        "scores = scores.masked_fill(mask == 0, -1e9)\n    weights = scores.softmax(dim=-1)",
        "weights = scores.softmax(dim=-1) * mask",
        "attention weights",
    ),
    "weights without gradient": (
        ATTENTION, "return weights @ value", "return weights.detach() @ value", "gradient of query",
    ),
    "heads split wrongly": (
        MULTI_HEAD,
        "x.view(x.size(0), -1, self.h, x.size(-1) // self.h).transpose(1, 2)",
        "x.view(x.size(0), self.h, -1, x.size(-1) // self.h)",
        "query heads",
    ),
    "values are keys": (MULTI_HEAD, "heads = weights @ v", "heads = weights @ k", "weighted sum"),
    "heads joined wrongly": (
        MULTI_HEAD, "heads.transpose(1, 2).flatten(-2)", "heads.reshape(query.shape)", "joined heads",
    ),
    "no output map": (MULTI_HEAD, "self.linears[-1](joined)", "joined", "output"),
    "GELU": (FEED_FORWARD, ".relu()", ".pow(2)", "ReLU"),
    "dropout in eval": (FEED_FORWARD, "self.dropout(", "F.dropout(", "two runs"),
    "unbiased deviation": (NORM, "unbiased=False", "unbiased=True", "(x - mean) / deviation"),
    "norm over the tokens": (NORM, "x.mean(-1, keepdim=True)", "x.mean(-2, keepdim=True)", "x - mean"),
    "sines before cosines": (POSITIONS, "dim=-1).flatten(-2)", "dim=-2).flatten(-2)", "position encoding"),
    "embeddings not scaled": (EMBEDDINGS, " * math.sqrt(self.d)", "", "output"),
    "post-norm": (SUBLAYER, "x + self.dropout(sublayer(self.norm(x)))", "self.norm(x + sublayer(x))", "norm(x)"),
    "upper triangle": (MASK, "tril", "triu", "mask"),
}  # fmt: skip


def check(tmp_path: Path, code: str) -> dict[str, str]:
    path = tmp_path / "mine.py"
    path.write_text(IMPORTS + code)
    return {finding.part: finding.difference for finding in check_file(path)}


@pytest.mark.parametrize("style", RIGHT)
def test_correct_modules_in_other_styles_pass(style: str, tmp_path: Path) -> None:
    findings = check(tmp_path, RIGHT[style])
    assert "MultiHeadedAttention" in findings
    assert set(findings.values()) == {""}


def test_the_code_of_the_lecture_passes_in_every_part() -> None:
    findings = {finding.part: finding.difference for finding in check_file(ANNOTATED)}
    assert findings == dict.fromkeys(PARTS, "")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_modules_are_located(name: str, tmp_path: Path) -> None:
    code, right, wrong, where = WRONG[name]
    assert set(check(tmp_path, code).values()) == {""}, "the code is right before the change"
    changed = code.replace(right, wrong)
    assert changed != code
    (difference,) = check(tmp_path, changed).values()
    assert difference.removeprefix("the first tensor that differs is: ").removeprefix("the ").startswith(where), (
        difference
    )


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("no scale", "not divided by sqrt(d_k)"),
        ("softmax over queries", "softmax runs over the queries"),
        ("mask inverted", "hides what Regard's shows"),
        ("mask after the softmax", "comes after the softmax"),
        ("unbiased deviation", "unbiased=False"),
        ("heads joined wrongly", ""),
    ],
)
def test_known_mistakes_are_named(name: str, cause: str, tmp_path: Path) -> None:
    code, right, wrong, _ = WRONG[name]
    (difference,) = check(tmp_path, code.replace(right, wrong)).values()
    assert len(difference.split("; ")) == (3 if cause else 2)
    assert cause in difference


def test_a_file_that_raises_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="raises NameError") as error:
        check(tmp_path, "\n\nthis_is_not_defined\n")
    assert "line 7" in str(error.value.location)


def test_code_that_raises_or_defines_nothing_is_reported(tmp_path: Path) -> None:
    raised = check(tmp_path, "def subsequent_mask(size):\n    raise KeyError('x')\n")
    assert raised["subsequent_mask"].startswith("raises KeyError")
    with pytest.raises(RegardError, match="none of the parts"):
        check(tmp_path, "x = 1\n")


def test_command_prints_a_line_for_each_part(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(IMPORTS + MASK + ATTENTION.replace("dim=-1", "dim=-2"))
    done = run_command("lectures", "check", str(path))
    assert done.code == 1
    assert done.output.splitlines()[0] == "subsequent_mask: equal in values and gradients"
    assert done.output.splitlines()[1].startswith("attention: the first tensor that differs is: attention weights")


def test_a_file_with_the_time_and_size_of_an_earlier_version_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    code, right, wrong, _ = WRONG["upper triangle"]
    assert set(check(tmp_path, code).values()) == {""}
    path = tmp_path / "mine.py"
    stat = path.stat()
    path.write_text(IMPORTS + code.replace(right, wrong))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    assert {item.difference for item in check_file(path)} != {""}
    assert not (tmp_path / "__pycache__").exists()
