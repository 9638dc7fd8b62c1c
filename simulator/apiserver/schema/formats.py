"""String formats that a schema may ask for (``format: date-time``). Unknown formats ask for nothing."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable
from datetime import date, datetime

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)")
_DURATION = re.compile(r"[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)\s*(?:ns|us|µs|μs|ms|s|m|h|d|w))+)")
_HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9][-A-Za-z0-9]*)*"
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_URI = re.compile(r"[A-Za-z][-+.A-Za-z0-9]*:\S*|/\S*")


def _accepts(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _date_time(text: str) -> object:
    if not _RFC3339.fullmatch(text):
        raise ValueError(text)
    return datetime.fromisoformat(text.upper())


def _full(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


FORMATS: dict[str, Callable[[str], bool]] = {
    "byte": _accepts(lambda text: base64.b64decode(text, validate=True)),
    "cidr": _accepts(lambda text: ipaddress.ip_network(text, strict=False)),
    "date": _accepts(date.fromisoformat),
    "date-time": _accepts(_date_time),
    "datetime": _accepts(_date_time),
    "duration": _full(_DURATION),
    "email": _full(_EMAIL),
    "hostname": _full(_HOST_NAME),
    "ipv4": _accepts(ipaddress.IPv4Address),
    "ipv6": _accepts(ipaddress.IPv6Address),
    "uri": _full(_URI),
    "uuid": _accepts(uuid.UUID),
}
