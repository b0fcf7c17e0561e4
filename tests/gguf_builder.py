"""Bytes of GGUF files, also of such as no writer would make."""

import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B"} | {
    U64: "Q",
    I64: "q",
    F64: "d",
}


def text(value):
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value(kind, content):
    if kind == STRING:
        return text(content)
    if kind == ARRAY:
        inner, items = content
        head = struct.pack("<IQ", inner, len(items))
        return head + b"".join(value(inner, item) for item in items)
    return struct.pack("<" + CODES[kind], content)


def pair(key, kind, content):
    return text(key) + struct.pack("<I", kind) + value(kind, content)


def tensor(name, dims, kind, offset):
    head = text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
    return head + struct.pack("<IQ", kind, offset)


def packed(pairs=(), tensors=(), *, version=3, data=b"", alignment=32, counts=None):
    counts = counts or (len(tensors), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data


TABLE = tensor("token_embd.weight", (64, 3), 8, 0)  # Q8_0: 3 rows of 68 bytes
