"""Where the ranks of a run meet."""

import socket
import sys

import pytest

from regard.base.errors import RegardError
from regard.base.limits import count_cores
from regard.training.distributed.rendezvous import Hosts, _find_local_address, check_ranks, find_interface

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="these tests read /proc"),
]


def test_more_ranks_than_the_host_has_cores_are_refused() -> None:
    check_ranks(count_cores(), "cpu")
    with pytest.raises(RegardError, match=f"Start at most {count_cores()} here; several hosts: `regard train --hosts`"):
        check_ranks(count_cores() + 1, "cpu")
    with pytest.raises(RegardError, match=r"need 99 GPUs; this host has \d"):
        check_ranks(99, "cuda")


def test_the_address_of_the_first_host_needs_a_port() -> None:
    assert Hosts.parse(2, "10.0.0.1:29400") == Hosts(2, "10.0.0.1", 29400)
    for text in ("10.0.0.1", ":29400", "10.0.0.1:", "10.0.0.1:99999", "10.0.0.1:port"):
        with pytest.raises(RegardError, match="HOST:PORT"):
            Hosts.parse(2, text)


def test_the_interface_of_an_address_is_found() -> None:
    assert find_interface("127.0.0.1") == "lo"
    assert find_interface("203.0.113.1") is None


def test_missing_host_ends_with_the_code_that_schedulers_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object) -> None:
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket.socket, "connect", resolve)
    with pytest.raises(RegardError, match="The rendezvous failed: Name or service not known") as raised:
        _find_local_address(Hosts(2, "host-0", 29400))
    assert raised.value.exit_code == 77
