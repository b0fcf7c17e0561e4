"""Every scheme against the package that defines it, where that package is installed.

The same schemes are held to their specifications in test_packed.py and test_packed_floats.py,
which need no package.
"""

import numpy as np
import pytest
from packed_builders import decoded, rounded_to_bf16, same_bits

from embtool.packed import Claims

RNG = np.random.default_rng(7)
ROWS = 70


def weights(rows=ROWS, width=256):
    """Numbers as in a table, with a row of zeros, a huge and a tiny one."""
    table = RNG.standard_normal((rows, width)).astype(np.float32)
    table[3] = 0
    table[5] *= 1e4
    table[6] *= 1e-4
    return table


# --- MLX -----------------------------------------------------------------------------------


def mlx_tensors(mx, parts, names=("weight", "scales", "biases")):
    tensors = {}
    for name, part in zip(names, parts, strict=False):
        if part.dtype == mx.bfloat16:
            tensors[f"m.{name}"] = ("BF16", np.array(part.view(mx.uint16)))
        else:
            tensors[f"m.{name}"] = np.array(part)
    return tensors


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_mlx(bits, group, kind):
    mx = pytest.importorskip("mlx.core")
    table = mx.array(weights()).astype(getattr(mx, kind))
    parts = mx.quantize(table, group, bits)
    claims = Claims(width=256) if group != 64 else Claims(bits=bits, group=group)
    got = decoded(mlx_tensors(mx, parts), claims)
    wide = [parts[0], parts[1].astype(mx.float32), parts[2].astype(mx.float32)]
    want = np.array(mx.dequantize(*wide, group_size=group, bits=bits))
    # Its compiler may fuse product and sum into one rounding.
    np.testing.assert_array_max_ulp(got, want, maxulp=1)


@pytest.mark.parametrize("mode", ["mxfp4", "mxfp8", "nvfp4"])
def test_mlx_small_floats(mode):
    mx = pytest.importorskip("mlx.core")
    parts = mx.quantize(mx.array(weights()), mode=mode)
    got = decoded(mlx_tensors(mx, parts))
    same_bits(got, np.array(mx.dequantize(*parts, mode=mode, dtype=mx.float32)))


# --- compressed-tensors --------------------------------------------------------------------


def to_numpy(torch, part):
    names = {torch.bfloat16: ("BF16", torch.int16), torch.float8_e4m3fn: ("F8_E4M3", torch.uint8)}
    if part.dtype in names:
        name, bits = names[part.dtype]
        return name, part.contiguous().view(bits).numpy()
    return part.contiguous().numpy()


def compress(scheme_args, form, table, extra=None):
    """(tensors as they are stored, what the package makes of them) in float32."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("compressed_tensors")
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams

    args = QuantizationArgs(**scheme_args)
    scheme = QuantizationScheme(targets=["Embedding"], weights=args)
    rows, width = table.shape
    group = args.group_size or width
    grouped = torch.from_numpy(table).reshape(rows, width // group, group)
    kwargs = {} if extra is None else {"global_scale": extra}
    scale, zero = calculate_qparams(grouped.amin(-1), grouped.amax(-1), args, **kwargs)
    state = {"weight": torch.from_numpy(table), "weight_scale": scale, "weight_zero_point": zero}
    if extra is not None:
        state["weight_global_scale"] = extra
    compressor = BaseCompressor.get_value_from_registry(form)
    stored = compressor.compress(state, scheme)
    want = compressor.decompress(dict(stored), scheme)["weight"].float().numpy()
    first = "weight_packed" if "weight_packed" in stored else "weight"
    names = [first, *(name for name in stored if name != first)]
    return {f"m.{name}": to_numpy(torch, stored[name]) for name in names}, want


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("group", [32, 128, None])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_compressed_tensors_integers(bits, group, symmetric):
    strategy = "group" if group else "channel"
    args = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": strategy}
    args |= {"group_size": group} if group else {}
    tensors, want = compress(args, "pack-quantized", weights())
    same_bits(decoded(tensors, Claims(bits=bits)), want)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize("group", [64, None])
def test_compressed_tensors_eight_bits(kind, group, symmetric):
    if kind == "float" and not symmetric:
        pytest.skip("floats have no zero point")
    strategy = "group" if group else "channel"
    args = {"num_bits": 8, "type": kind, "symmetric": symmetric, "strategy": strategy}
    args |= {"group_size": group} if group else {}
    tensors, want = compress(args, "naive-quantized", weights())
    same_bits(decoded(tensors), want)


def test_compressed_tensors_nvfp4():
    torch = pytest.importorskip("torch")
    args = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
    args |= {"scale_dtype": torch.float8_e4m3fn}
    table = weights()
    factor = torch.tensor([448 * 6 / float(np.abs(table).max())])
    tensors, want = compress(args, "nvfp4-pack-quantized", table, factor)
    same_bits(rounded_to_bf16(decoded(tensors)), want)  # the package rounds to BF16


def test_compressed_tensors_mxfp4():
    torch = pytest.importorskip("torch")
    args = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}
    args |= {"scale_dtype": torch.uint8}
    tensors, want = compress(args, "mxfp4-pack-quantized", weights())
    same_bits(rounded_to_bf16(decoded(tensors)), want)


# --- bitsandbytes --------------------------------------------------------------------------


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("run", [64, 128, 4096])
@pytest.mark.parametrize("kind", ["nf4", "fp4"])
def test_bitsandbytes_four_bits(kind, run, nested):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("bitsandbytes").functional
    table = torch.from_numpy(weights(rows=300))
    packed, state = functional.quantize_4bit(
        table, blocksize=run, quant_type=kind, compress_statistics=nested
    )
    want = functional.dequantize_4bit(packed, state).numpy()
    tensors = {"m.weight": packed.numpy()}
    tensors |= {f"m.weight.{k}": v.numpy() for k, v in state.as_dict(packed=True).items()}
    got = decoded(tensors)
    np.testing.assert_array_max_ulp(got, want, maxulp=1 if nested else 0)


def test_bitsandbytes_int8():
    torch = pytest.importorskip("torch")
    bitsandbytes = pytest.importorskip("bitsandbytes")
    numbers = torch.from_numpy(RNG.integers(-128, 128, (ROWS, 96), np.int8))
    scale = torch.from_numpy(np.abs(RNG.standard_normal(ROWS)).astype(np.float32))
    want = bitsandbytes.functional.int8_vectorwise_dequant(numbers, scale).numpy()
    tensors = {"m.weight": numbers.numpy(), "m.SCB": scale.numpy()}
    same_bits(decoded(tensors | {"m.weight_format": np.array(0, np.uint8)}), want)
