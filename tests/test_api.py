"""docs/api.md is true: its blocks are run as they stand."""

import doctest
from pathlib import Path

import embtool

PAGE = Path(__file__).parent.parent / "docs" / "api.md"


def test_every_block_of_the_page(gemma_path):
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried > 15) == (0, True)


def test_what_the_package_offers():
    for name in embtool.__all__:
        assert getattr(embtool, name) is not None
