"""The checkpoint of a model: which file holds which tensor, read from headers alone."""

from functools import partial

from embtool.config import Config
from embtool.errors import EmbtoolError, FormatError, SourceError, UnsupportedError
from embtool.header import TensorInfo, find_in_fragment, parse_index, read_header
from embtool.model.gguf_parts import open_gguf
from embtool.model.records import PICKLES, Checkpoint
from embtool.model.split import open_split, piece_names
from embtool.source import Source
from embtool.tensors import find_tables, wanted_names

#: An index longer than this is first read in two pieces where it must come from the Hub.
_LONG_INDEX = 1 << 20
_FRAGMENTS = (64 << 10, 256 << 10)


def open_checkpoint(source: Source, file: str, config: Config | None) -> Checkpoint:
    """Read the headers of a checkpoint, of its shards only those that hold a table.

    Raises:
        FormatError: a header or an index that is malformed, or that lies.
        UnsupportedError: a file of a kind that is not read.
    """
    if file.endswith(".gguf"):
        return open_gguf(source, file)
    if file.endswith(".json"):
        return _open_shards(source, file, config)
    if not file.endswith((".safetensors", *PICKLES)):
        raise UnsupportedError(
            f"{source.ref}: {file} is not a kind of checkpoint that is read",
            "give a .safetensors, .gguf or .bin file, or word vectors",
        )
    pieces = piece_names(source, file)
    return open_split(source, pieces, config) if len(pieces) > 1 else _open_single(source, file)


def _open_single(source: Source, file: str) -> Checkpoint:
    checkpoint = Checkpoint(file)
    checkpoint.tensors |= _header(source, checkpoint, file)
    checkpoint.files |= dict.fromkeys(checkpoint.tensors, file)
    return checkpoint


def _open_shards(source: Source, file: str, config: Config | None) -> Checkpoint:
    """Only the shards that hold a table are opened."""
    if source.path(file) is None and source.size(file) > _LONG_INDEX:
        checkpoint = _from_fragments(source, file, config)
        if checkpoint is not None:
            return checkpoint
    checkpoint = Checkpoint(file)
    _read_index(source, checkpoint)
    named = find_tables(dict.fromkeys(checkpoint.files), config)
    for name in (named.input, named.output, named.extra):
        if name is not None:
            find_tensor(source, checkpoint, name)
    return checkpoint


def find_tensor(source: Source, checkpoint: Checkpoint, name: str) -> TensorInfo | None:
    """Where a tensor lies, from the header of its shard; None where no file has it.

    Of a long index that was read in pieces the rest is read where those do not name it.

    Raises:
        FormatError: the shard lacks it, or is malformed.
        SourceError: the shard cannot be read.
    """
    if name not in checkpoint.files:
        name_all(source, checkpoint)
    if name in checkpoint.files and checkpoint.tensors.get(name) is None:
        _add_shard(source, checkpoint, checkpoint.files[name])
    info = checkpoint.tensors.get(name)
    if info is not None and info.stop == 0 and checkpoint.files[name] in checkpoint.pickled:
        pickled = checkpoint.pickled[checkpoint.files[name]]
        info = checkpoint.tensors[name] = pickled.header([name]).tensors[name]
    return info


def name_all(source: Source, checkpoint: Checkpoint) -> None:
    """Read the rest of an index that was read in pieces."""
    if not checkpoint.complete and checkpoint.file.endswith(".json"):
        _read_index(source, checkpoint)


def _read_index(source: Source, checkpoint: Checkpoint) -> None:
    """Add what the index says to what is known."""
    file = checkpoint.file
    index = parse_index(source.read(file), file)
    named = {name: _beside(file, shard) for name, shard in index.weight_map.items()}
    checkpoint.files = named | checkpoint.files
    checkpoint.tensors = dict.fromkeys(named) | checkpoint.tensors
    checkpoint.total_params = index.total_parameters
    checkpoint.total_nbytes = index.total_size
    checkpoint.complete = True


def _from_fragments(source: Source, file: str, config: Config | None) -> Checkpoint | None:
    """Both tables from the two ends of a long index, or None where they are not in them."""
    wanted = wanted_names(config)
    nbytes = source.size(file)
    head, tail = _FRAGMENTS
    names = [*wanted.input, *wanted.output]
    found: dict[str, str] = {}
    for start, stop in ((0, head), (nbytes - tail, nbytes)):
        found |= find_in_fragment(source.bytes(file, start, stop), names)
        has_input = any(name in found for name in wanted.input)
        has_output = any(name in found for name in wanted.output)
        if has_input and (has_output or (config is not None and config.tied)):
            files = {name: _beside(file, shard) for name, shard in found.items()}
            checkpoint = Checkpoint(file, files=dict(files), complete=False)
            for name in files:
                find_tensor(source, checkpoint, name)
            return checkpoint
    return None


def _add_shard(source: Source, checkpoint: Checkpoint, shard: str) -> None:
    try:
        tensors = _header(source, checkpoint, shard)
    except SourceError as error:
        raise SourceError(
            f"{source.ref}: {checkpoint.file} names the shard {shard}: "
            f"{error.message.removeprefix(f'{source.ref}: ')}",
            error.advice,
        ) from error
    for name, file in checkpoint.files.items():
        if file == shard and name not in tensors:
            raise FormatError(
                f"{source.ref}: {checkpoint.file} says that {shard} holds {name}, "
                "but that shard does not",
                "download the model again, or name a file: MODEL:FILE",
            )
    checkpoint.tensors |= tensors
    checkpoint.files |= dict.fromkeys(tensors, shard)


def read_all(source: Source, checkpoint: Checkpoint) -> dict[str, TensorInfo] | None:
    """Every tensor of the checkpoint, or None where that means asking the Hub for headers.

    A shard that is not there, or not what the index says, is noted, and the answer is None.
    """
    unread = [name for name, info in checkpoint.tensors.items() if info is None]
    shards = dict.fromkeys(checkpoint.files[name] for name in unread)
    if not checkpoint.complete or any(source.path(shard) is None for shard in shards):
        return None
    for shard in shards:
        try:
            _add_shard(source, checkpoint, shard)
        except EmbtoolError as error:
            checkpoint.note(error.message.removeprefix(f"{source.ref}: "))
            return None
    return {name: info for name, info in checkpoint.tensors.items() if info is not None}


def _header(source: Source, checkpoint: Checkpoint, file: str) -> dict[str, TensorInfo]:
    read, nbytes = partial(source.bytes, file), source.size(file)
    if not file.endswith(PICKLES):
        return read_header(read, nbytes, file).tensors
    from embtool.pickles import read_pickle

    pickled = checkpoint.pickled[file] = read_pickle(read, nbytes, file)
    return {
        name: TensorInfo(name, dtype, shape, 0, 0)
        for name, (dtype, shape) in pickled.shapes.items()
    }


def _beside(index: str, shard: str) -> str:
    """A shard's name as the model's folder knows it: an index in a subfolder names its own."""
    folder, slash, _ = index.rpartition("/")
    return folder + slash + shard
