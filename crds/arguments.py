"""Arguments of a plugin or an action in the configuration file, read by type.

Whoever reads one says what it must be; what does not fit stops the start with a message that names owner,
key, value and type. Neighbours: ``schedulerconfig`` reads the file, ``messages`` words the errors.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from volcano_py.crds.messages import did_you_mean, shown

__all__ = ["Arguments", "ConfigError", "as_flag", "list_names"]


class ConfigError(ValueError):
    """A configuration that can't be used; ``messages`` has every fault that was found, at least one."""

    def __init__(self, messages: str | Iterable[str]) -> None:
        self.messages = [messages] if isinstance(messages, str) else list(messages)
        super().__init__("; ".join(self.messages))


class Arguments(Mapping[str, Any]):
    """The arguments of one plugin or action, read by type.

    Args:
        owner: who they belong to, for messages, such as ``plugin gang``.
        values: argument key to what the file has.
    """

    def __init__(self, owner: str, values: Mapping[str, Any] | None = None) -> None:
        self.owner = owner
        self._values = dict(values or {})

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Arguments({self.owner!r}, {self._values!r})"

    def get_int(self, key: str, default: int) -> int:
        """A whole number; ``ConfigError`` where the file has anything else, a text of digits included."""
        value = self._values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self._refuse(key, value, "a whole number")
        return value

    def get_float(self, key: str, default: float) -> float:
        """A number; ``ConfigError`` where the file has anything else, infinity and NaN included."""
        value = self._values.get(key)
        if value is None:
            return default
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not abs(value) <= 1e300:
            self._refuse(key, value, "a number")
        return float(value)

    def get_bool(self, key: str, default: bool) -> bool:
        """True or false, in quotes or not; ``ConfigError`` where the file has anything else."""
        value = self._values.get(key)
        if value is None:
            return default
        flag = as_flag(value)
        if flag is None:
            self._refuse(key, value, "true or false")
        return flag

    def get_str(self, key: str, default: str) -> str:
        """A text; ``ConfigError`` where the file has anything else."""
        value = self._values.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            self._refuse(key, value, "a text")
        return value

    def get_list(self, key: str, default: list[str]) -> list[str]:
        """A list of texts, or one text with commas between them; ``ConfigError`` on anything else."""
        value = self._values.get(key)
        if value is None:
            return list(default)
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            self._refuse(key, value, "a list of texts")
        return list(value)

    def unknown(self, known_keys: Iterable[str]) -> list[str]:
        """A message for every key that isn't known; a known key that ends in ``*`` stands for its family."""
        known = list(known_keys)
        families = tuple(key[:-1] for key in known if key.endswith("*"))
        return [
            f"{self.owner}: unknown argument {shown(key)} (its value is {shown(value)})"
            f"{did_you_mean(key, known)}; {list_names('it knows', known)}"
            for key, value in self._values.items()
            if key not in known and not (families and key.startswith(families))
        ]

    def _refuse(self, key: str, value: object, expected: str) -> NoReturn:
        quoted = isinstance(value, str) and _is_number(value) and "number" in expected
        hint = " (drop the quotes)" if quoted else ""
        raise ConfigError(f"{self.owner}: argument {shown(key)} must be {expected}, not {shown(value)}{hint}")


def as_flag(value: object) -> bool | None:
    """True or false, in quotes or not; None for anything else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def list_names(lead: str, names: Iterable[str]) -> str:
    """*names* behind *lead*, as a message ends: ``known are gang, priority``."""
    listed = ", ".join(names)
    return f"{lead} {listed}" if listed else f"{lead} none"
