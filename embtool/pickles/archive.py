"""The directory of a zip file, and where its members' bytes lie; nothing is unpacked here.

The format (APPNOTE.TXT of PKWARE, 4.3): members one after another, each behind a local header;
then the central directory, one entry a member; then the end record, and before it, where a number
needs more than 32 bits, a zip64 record and its locator. Both headers of a member must agree.
"""

import struct
from dataclasses import dataclass

from embtool.errors import FormatError, UnsupportedError
from embtool.header import Read, shown

_AGAIN = "download or copy the file again"
_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LARGEST_DIRECTORY = 64 << 20
_ENCRYPTED = 0x2041  # the member, the central directory, or by strong encryption


@dataclass(frozen=True, slots=True)
class Member:
    """A member as the central directory has it; nbytes: stored bytes, size: once unpacked."""

    name: str
    raw_name: bytes
    method: int
    flags: int
    nbytes: int
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class Archive:
    """A zip file's members by name; `end` is where the central directory begins."""

    file: str
    members: dict[str, Member]
    end: int

    def place(self, read: Read, name: str) -> tuple[int, int]:
        """Where a stored member's bytes are, (start, stop), by its local header.

        Raises UnsupportedError where it is compressed or encrypted, FormatError where it is not
        there, where the two headers disagree or where it reaches beyond the directory.
        """
        member = self.members.get(name)
        if member is None:
            raise FormatError(f"{self.file} has no member {shown(name)}", _AGAIN)
        if member.method != 0:
            raise UnsupportedError(
                f"{self.file}: {shown(name)} is compressed, so that no row of it can be read alone",
                "write the file without compression",
            )
        return self.place_packed(read, member)

    def place_packed(self, read: Read, member: Member) -> tuple[int, int]:
        """The same of a member that may be compressed."""
        what = f"{self.file}: {shown(member.name)}"
        if member.flags & _ENCRYPTED:
            raise UnsupportedError(f"{what} is encrypted", "decrypt the file first")
        length = _LOCAL.size + len(member.raw_name)
        raw = read(member.offset, member.offset + length)
        if len(raw) != length or raw[:4] != b"PK\x03\x04":
            raise FormatError(f"{what} has no header at byte {member.offset}", _AGAIN)
        _, _, flags, method, _, _, _, nbytes, size, name, extra = _LOCAL.unpack_from(raw)
        there = (raw[_LOCAL.size :], name, method, flags & _ENCRYPTED)
        if there != (member.raw_name, len(member.raw_name), member.method, 0):
            raise FormatError(f"{what} has a header that is not the directory's", _AGAIN)
        if not _agree(nbytes, member.nbytes) or not _agree(size, member.size):
            raise FormatError(
                f"{what} has {nbytes} bytes by its own header, {member.nbytes} by the directory",
                _AGAIN,
            )
        start = member.offset + length + extra
        if start + member.nbytes > self.end:
            raise FormatError(
                f"{what} reaches to byte {start + member.nbytes}, the members end at {self.end}",
                _AGAIN,
            )
        return start, start + member.nbytes


def _agree(local: int, told: int) -> bool:
    """Zero: the sizes follow the member. All ones: they are in its extra field."""
    return local in (0, 0xFFFFFFFF, told)


def read_archive(read: Read, nbytes: int, file: str) -> Archive:
    """Read the central directory of a zip file of `nbytes` bytes; two or three reads at its end.

    Raises FormatError where it is malformed, truncated, or has bytes before, between or behind
    what the directory tells of.
    """
    count, length, start, position = _end(read, nbytes, file)
    if start + length != position or length > _LARGEST_DIRECTORY or count * _ENTRY.size > length:
        raise FormatError(
            f"{file}: its directory of {count} members and {length} bytes at byte {start} does "
            f"not end at {position}",
            _AGAIN,
        )
    raw = read(start, position)
    members: dict[str, Member] = {}
    at = 0
    for _ in range(count):
        member, at = _entry(raw, at, file)
        if member.name in members:
            raise FormatError(f"{file}: the member {shown(member.name)} stands twice", _AGAIN)
        members[member.name] = member
    if at != len(raw):
        raise FormatError(f"{file}: its directory has {len(raw) - at} bytes too many", _AGAIN)
    return Archive(file, members, start)


def _end(read: Read, nbytes: int, file: str) -> tuple[int, int, int, int]:
    """Members, the directory's bytes, where it begins, and where it must end."""
    first = max(0, nbytes - _END.size - 0xFFFF - _END64_LOCATOR.size)
    tail = read(first, nbytes)
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0:
        if at + _END.size <= len(tail):
            _, disk, _, _, count, length, start, comment = _END.unpack_from(tail, at)
            if at + _END.size + comment == len(tail):
                break
        at = tail.rfind(b"PK\x05\x06", 0, at)
    if at < 0 or disk not in (0, 0xFFFF):
        raise FormatError(f"{file} is a truncated zip file: it has no end record", _AGAIN)
    locator = at - _END64_LOCATOR.size
    if locator < 0 or tail[locator : locator + 4] != b"PK\x06\x07":
        return count, length, start, first + at
    _, _, position, _ = _END64_LOCATOR.unpack_from(tail, locator)
    raw = read(position, position + _END64.size) if position < nbytes else b""
    if len(raw) != _END64.size or raw[:4] != b"PK\x06\x06":
        raise FormatError(f"{file}: it has no zip64 record at byte {position}", _AGAIN)
    _, _, _, _, _, _, _, count, length, start = _END64.unpack(raw)
    return count, length, start, position


def _entry(raw: bytes, at: int, file: str) -> tuple[Member, int]:
    """One entry of the directory, and where the next one begins."""
    if raw[at : at + 4] != b"PK\x01\x02" or at + _ENTRY.size > len(raw):
        raise FormatError(f"{file}: its directory is malformed at byte {at} of it", _AGAIN)
    fields = _ENTRY.unpack_from(raw, at)
    flags, method, nbytes, size, name, extra, comment = fields[3], fields[4], *fields[8:13]
    offset = fields[16]
    at += _ENTRY.size
    raw_name, more = raw[at : at + name], raw[at + name : at + name + extra]
    stop = at + name + extra + comment
    if stop > len(raw):
        raise FormatError(f"{file}: its directory ends within a member's name", _AGAIN)
    size, nbytes, offset = _zip64(more, [size, nbytes, offset], file)
    text = raw_name.decode("utf-8", "surrogateescape")
    if method == 0 and size != nbytes:
        raise FormatError(
            f"{file}: {shown(text)} is stored in {nbytes} bytes and has {size}", _AGAIN
        )
    return Member(text, raw_name, method, flags, nbytes, size, offset), stop


def _zip64(extra: bytes, numbers: list[int], file: str) -> list[int]:
    """Sizes and offset, those that are all ones taken from the extra field of kind 1."""
    wide = [place for place, number in enumerate(numbers) if number == 0xFFFFFFFF]
    at = 0
    while wide and at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        given = extra[at + 4 : at + 4 + min(length, 8 * len(wide))]
        if kind == 1 and len(given) == 8 * len(wide):
            for place, (number,) in zip(wide, struct.iter_unpack("<Q", given), strict=True):
                numbers[place] = number
            return numbers
        at += 4 + length
    if wide:
        raise FormatError(f"{file}: a member's size or place is missing (zip64)", _AGAIN)
    return numbers
