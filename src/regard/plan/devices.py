"""A table of devices: memory, bandwidth, peak arithmetic and price, each figure with its source.

Peak arithmetic is that of dense matrix products, without sparsity. Prices are ranges of on-demand offers in USD per
device and hour: they change from week to week, so a plan states them, and `--price` replaces them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from regard.base.errors import RegardError
from regard.config.toml_file import suggest

GB = 10**9
NVIDIA = "https://www.nvidia.com/en-us/data-center"
H100_SHEET = f"{NVIDIA}/h100/ (specifications of H100 SXM; half of the figures that are given with sparsity)"
H200_SHEET = f"{NVIDIA}/h200/ (specifications of H200 SXM; half of the figures that are given with sparsity)"
A100_SHEET = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"
PRICES = "https://www.mercatus-ai.com/blog/cloud-gpu-pricing (on demand, many providers, May 2026)"
MLPERF = "https://github.com/mlcommons"
NETWORK = (
    "400 Gb/s per GPU between hosts: eight adapters for eight H100 in "
    f"{MLPERF}/inference_results_v3.1/blob/main/closed/Dell/systems/XE9680_H100_SXM_80GBx8_TRT.json"
)
H200_NETWORK = (
    "400 Gb/s per GPU between hosts: ten adapters for eight H200, two of them assumed to be for storage, in "
    f"{MLPERF}/inference_results_v4.1/blob/main/closed/NVIDIA/systems/H200-SXM-141GBx8_TRT_MaxQ.json"
)
H100_MFU = (
    "0.33 to 0.39 for 8B at the end of 2024 (https://github.com/pytorch/torchtitan/blob/main/benchmarks/"
    "llama3_h100_202412_torchtitan.md); assumed: 0.3 to 0.5"
)
A100_MFU = (
    "0.57 to 0.58 for 8B and 0.52 for 70B, 0.69 with its recomputed products, on 64 A100 (docs/performance.md of "
    "https://github.com/pytorch/torchtitan in 2024); assumed: 0.5 to 0.7"
)
A100_NETWORK = (
    "200 Gb/s per GPU between hosts and 300 GB/s in each direction within one, as in the simulator of "
    "https://github.com/calculon-ai/calculon/blob/main/systems/a100_80g.json"
)


@dataclass(frozen=True)
class DeviceSpec:
    """What a device has, and who says so."""

    name: str
    memory: int  # bytes
    memory_bandwidth: float  # bytes per second
    peak_flops: Mapping[str, float]  # dense products per second, by train.precision
    host_bandwidth: float  # bytes per second that a device sends to others of its host
    network_bandwidth: float  # bytes per second that a device sends to other hosts
    per_host: int  # devices per host
    mfu: tuple[float, float]  # share of the peak that trainings of large models reach, recomputed products included
    price: tuple[float, float] | None  # USD per device and hour
    sources: Mapping[str, str] = field(default_factory=dict)  # by figure


DEVICES = {
    device.name: device
    for device in (
        DeviceSpec(
            "a100",
            memory=80 * GB,
            memory_bandwidth=2.039e12,
            peak_flops={"bfloat16": 312e12, "float16": 312e12, "float32": 19.5e12},
            host_bandwidth=300e9,
            network_bandwidth=25e9,
            per_host=8,
            mfu=(0.5, 0.7),
            price=(0.80, 3.00),
            sources={
                "memory, bandwidth, FLOPs, NVLink": A100_SHEET,
                "network": A100_NETWORK,
                "MFU": A100_MFU,
                "price": PRICES,
            },
        ),
        DeviceSpec(
            "h100",
            memory=80 * GB,
            memory_bandwidth=3.35e12,
            peak_flops={"bfloat16": 989.4e12, "float16": 989.4e12, "float32": 66.9e12},
            host_bandwidth=450e9,
            network_bandwidth=50e9,
            per_host=8,
            mfu=(0.3, 0.5),
            price=(1.99, 5.00),
            sources={
                "memory, bandwidth, FLOPs, NVLink": H100_SHEET,
                "network": NETWORK,
                "MFU": H100_MFU,
                "price": PRICES,
            },
        ),
        DeviceSpec(
            "h200",
            memory=141 * GB,
            memory_bandwidth=4.8e12,
            peak_flops={"bfloat16": 989.4e12, "float16": 989.4e12, "float32": 66.9e12},
            host_bandwidth=450e9,
            network_bandwidth=50e9,
            per_host=8,
            mfu=(0.3, 0.5),
            price=(2.50, 7.00),
            sources={
                "memory, bandwidth, FLOPs, NVLink": H200_SHEET,
                "network": H200_NETWORK,
                "MFU": H100_MFU,
                "price": PRICES,
            },
        ),
    )
}


def find_device(name: str) -> DeviceSpec:
    """Return a device of the table."""
    if name not in DEVICES:
        raise RegardError(
            f"There is no device '{name}' in the table.", location="--device", hint=suggest(name, list(DEVICES))
        )
    return DEVICES[name]
