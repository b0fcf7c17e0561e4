"""The wire format of protocol buffers, as far as files of tokenizers use it.

https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator

from embtool.errors import FormatError
from embtool.vocab.contents import ADVICE

Value = int | memoryview
_LONGEST_VARINT = 10


def fields(message: memoryview, file: str) -> Iterator[tuple[int, Value]]:
    """The numbers and values of a message's fields, in order.

    A value is an int (a varint), or the bytes of what else there is: a nested message, a text, a
    float in 4 bytes. Raises FormatError for what is cut or is no such message.
    """
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at, file)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(message, at, file)
            yield number, value
            continue
        if wire == 2:
            length, at = _varint(message, at, file)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise _malformed(file, f"a field of the kind {wire}")
        if number == 0 or length > end - at:
            raise _malformed(file, f"a field of {length} bytes where {end - at} are left")
        yield number, message[at : at + length]
        at += length


def _varint(message: memoryview, at: int, file: str) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(message[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise _malformed(file, "a number that does not end")


def _malformed(file: str, what: str) -> FormatError:
    return FormatError(f"{file}: it is no SentencePiece model: {what}", ADVICE)
