"""A group of options is taken as one value, and each of them is typed as any other option."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from volcano_py.cli.option_groups import grouped


@dataclass(frozen=True)
class Size:
    """Two options."""

    wide: Annotated[int, typer.Option("--wide", min=1)] = 2
    names: Annotated[list[str] | None, typer.Option("--name")] = None


def call(*words: str) -> tuple[int, str]:
    app = typer.Typer()

    @app.command()
    @grouped
    def show(size: Size, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
        """Show it."""
        typer.echo(f"{size} {loud}")

    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


def test_the_command_gets_the_group_and_its_own_options() -> None:
    assert call() == (0, "Size(wide=2, names=None) False\n")
    assert (
        call("--loud", "--wide", "3", "--name", "a", "--name", "b")[1]
        == "Size(wide=3, names=['a', 'b']) True\n"
    )


def test_options_of_a_group_are_checked_and_listed() -> None:
    code, said = call("--wide", "0")
    assert code == 2
    assert "greater than or equal to 1" in " ".join(said.split())
    assert "--name" in call("--help")[1]


def test_an_option_of_a_group_needs_a_default() -> None:
    @dataclass(frozen=True)
    class Bare:
        name: str

    def show(bare: Bare) -> None:
        del bare

    show.__annotations__["bare"] = Bare
    with pytest.raises(TypeError, match=r"Bare\.name: an option of a group needs a default"):
        grouped(show)
