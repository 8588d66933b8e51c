"""Captions are reStructuredText without mistakes, which Snakemake would print into the report."""

import io
from pathlib import Path

import pytest
from docutils.core import publish_doctree

from conftest import ROOT


@pytest.mark.parametrize(
    "path", sorted((ROOT / "workflow" / "report").glob("*.rst")), ids=lambda path: path.name
)
def test_docutils_has_nothing_to_say(path: Path):
    said = io.StringIO()
    settings = {"warning_stream": said, "report_level": 1}
    publish_doctree(path.read_text(encoding="utf-8"), settings_overrides=settings)
    assert not said.getvalue()
