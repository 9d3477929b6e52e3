"""Rendezvous of the ranks: files on a single host, or an address of the first of several hosts.

On a single host, ranks listen on 127.0.0.1 only. With several hosts, the first one listens on the given address only.
"""

import errno
import os
import socket
import struct
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # noqa: TID251
from torch.distributed.elastic.multiprocessing import LogsSpecs  # noqa: TID251
from torch.distributed.launcher.api import LaunchConfig  # noqa: TID251

from regard.base.errors import RanksFailedError, RegardError
from regard.base.formatting import pluralize
from regard.base.limits import count_cores
from regard.training.distributed.context import TIMEOUT as DEFAULT_TIMEOUT

HEARTBEAT = 5  # seconds between the heartbeats of an agent
JOIN_SECONDS = 900  # to wait for the other hosts
USER_VARIABLES = {"OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}  # not changed if the user has set them
SIOCGIFADDR = 0x8915  # Linux: the address of a network interface


@dataclass(frozen=True)
class Hosts:
    """The hosts of a run; start the same command on each."""

    count: int
    address: str  # address of the first host, on which it listens
    port: int

    @classmethod
    def parse(cls, count: int, rendezvous: str) -> Self:
        """Read `host:port`.

        Raises:
            RegardError: The format is invalid.
        """
        address, separator, port = rendezvous.rpartition(":")
        if not separator or not address or not port.isdigit() or not 0 < int(port) < 65536:
            hint = "Give the address of the first host and a free port, such as 10.0.0.1:29400."
            raise RegardError(f"--rendezvous must be HOST:PORT, got '{rendezvous}'.", hint=hint)
        return cls(count, address, int(port))


@contextmanager
def prepare_rendezvous(
    folder: Path, ranks: int, hosts: Hosts | None, max_restarts: int, output: LogsSpecs
) -> Iterator[LaunchConfig]:
    """Set the ranks' environment and yield the agent's settings.

    The agent's default, one TCP store for itself and all ranks, listens on every address and failed after a restart
    with gloo ("Connection refused"), so agent and ranks get separate stores.
    """
    count = 1 if hosts is None else hosts.count
    config = LaunchConfig(
        min_nodes=count,
        max_nodes=count,
        nproc_per_node=ranks,
        rdzv_backend="c10d",
        max_restarts=max_restarts,
        logs_specs=output,
        signals_to_handle="SIGQUIT",  # the others are ours
        rdzv_configs={"timeout": JOIN_SECONDS},
    )
    variables = {
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "OMP_NUM_THREADS": str(max(1, count_cores() // ranks)),
    }
    store = None
    if hosts is None:
        config.run_id = uuid.uuid4().hex
        config.rdzv_endpoint = str(folder / "rendezvous")
        config.rdzv_configs |= {"store_type": "file"}
        config.local_addr = "127.0.0.1"
        variables |= {"REGARD_STORE": str(folder / "store")}
        interface: str | None = "lo" if sys.platform == "linux" else "lo0"
    else:
        store = _listen(hosts)
        config.run_id = "regard"  # the same on every host
        config.rdzv_endpoint = f"{hosts.address}:{hosts.port}"
        config.rdzv_configs |= {"store_type": "tcp", "is_host": False}
        # A host may be silent as long as a rank; the agent's default timeout is 15 seconds.
        timeout = int(float(os.environ.get("REGARD_TIMEOUT", DEFAULT_TIMEOUT))) + HEARTBEAT
        config.rdzv_configs |= {"read_timeout": timeout, "keep_alive_max_attempt": timeout // HEARTBEAT}
        config.local_addr = _find_local_address(hosts)
        variables |= {"REGARD_STORE": f"tcp://{hosts.address}:{hosts.port}"}
        interface = find_interface(config.local_addr)
    if interface is not None:
        variables |= {
            name: interface for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME") if name not in os.environ
        }
    user_variables = USER_VARIABLES & os.environ.keys()
    with _environment({name: value for name, value in variables.items() if name not in user_variables}):
        yield config
    del store  # it served until here


def check_ranks(ranks: int, device: str) -> None:
    """Check that this host has a core or a GPU for each of its ranks.

    Args:
        ranks: Number of ranks on this host.
        device: The device of the run, "auto" for the default one.

    Raises:
        RegardError: There are too many ranks.
    """
    is_gpu = torch.cuda.is_available() if device == "auto" else device.startswith("cuda")
    count, unit = (torch.cuda.device_count(), "GPU") if is_gpu else (count_cores(), "core")
    if ranks > count:
        message = f"{ranks} ranks need {pluralize(ranks, unit)}; this host has {count}."
        raise RegardError(message, hint=f"Start at most {count} here; several hosts: `regard train --hosts`.")


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    previous = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _listen(hosts: Hosts) -> TCPStore | None:
    """Serve the store on the given address if it belongs to this host; return None on other hosts."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((hosts.address, hosts.port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:  # the address belongs to another host
            return None
        hint = "Give the address of the first host and a port that is free there."
        raise RegardError(f"{error.strerror}.", location=f"{hosts.address}:{hosts.port}", hint=hint) from None
    listener.listen(1024)
    return TCPStore(
        hosts.address, hosts.port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach()
    )


def _find_local_address(hosts: Hosts) -> str:
    """Return this host's address on the route to the first host, without sending data."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((hosts.address, hosts.port))
        except OSError as error:
            raise explain_missing_hosts(hosts, error) from None
        return str(probe.getsockname()[0])


def find_interface(address: str) -> str | None:
    """Return the name of the network interface with this address (Linux); None if it cannot be found."""
    if sys.platform != "linux":
        return None
    import fcntl  # Windows does not have it

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # it has no address
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


def explain_missing_hosts(hosts: Hosts | None, error: Exception) -> RegardError:
    """Return an error for a failed rendezvous; between hosts, a scheduler may try again with others."""
    if hosts is None:
        return RegardError(f"The ranks could not be started: {error}")
    hint = f"Start the same command on {pluralize(hosts.count, 'host')}, and check that all can reach this address."
    return RanksFailedError(f"The rendezvous failed: {error}", location=f"{hosts.address}:{hosts.port}", hint=hint)
