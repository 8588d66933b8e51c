"""What an environment's YAML file asks for, and what is no such file."""

import re

import pytest

import dependencies


def environment(folder, text):
    path = folder / "some.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_dependencies_are_the_specs(tmp_path):
    text = "channels: [conda-forge]\ndependencies:\n  - python =3.12\n  - numpy=2.3.1\n"
    assert dependencies.specs(environment(tmp_path, text)) == ["python =3.12", "numpy=2.3.1"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("dependencies: [a]", "channels"),
        ("channels:\ndependencies: [a]", "channels"),
        ("channels: conda-forge\ndependencies: [a]", "channels"),
        ("channels: [bioconda]\ndependencies: [a]", "channels"),
        ("channels: [conda-forge, bioconda]\ndependencies: [a]", "channels"),
        ("channels: [conda-forge]", "dependencies"),
        ("channels: [conda-forge]\ndependencies: []", "dependencies"),
        ("channels: [conda-forge]\ndependencies: [a, {pip: [b]}]", "dependencies"),
        ("channels: [conda-forge]\ndependencies: [a, 3.12]", "dependencies"),
    ],
)
def test_what_is_not_known_is_named_by_file_and_key(tmp_path, text, key):
    path = environment(tmp_path, text)
    with pytest.raises(ValueError) as raised:
        dependencies.specs(path)
    assert str(raised.value).startswith(f"{path}: {key}: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text", ["", "- a", "channels: [", "channels: [conda-forge]\ndependencies: numpy"]
)
def test_what_is_no_environment_is_named(tmp_path, text):
    path = environment(tmp_path, text)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        dependencies.specs(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / 'no.yaml'}: ")):
        dependencies.specs(tmp_path / "no.yaml")
