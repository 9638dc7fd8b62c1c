"""Names, labels and keys: which texts Kubernetes takes, and what it says of others.

Each function returns the rules that a text breaks, as the server words them; empty where it is good.
"""

from __future__ import annotations

import ipaddress
import re

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED})?"
_CONFIG_KEY = r"[-._a-zA-Z0-9]+"
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_ENV_NAME = re.compile(r"[ -<>-~]+")

LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    f"'{_LABEL}')"
)
DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    f"validation is '{_DNS_1035}')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)
_QUALIFIED_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED}')"
)
LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    f"for validation is '{_LABEL_VALUE}')"
)
CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    f"'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)
ENV_NAME_RULE = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
IP_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
PORT_RULE = "must be between 1 and 65535, inclusive"


def _shaped(text: str, pattern: str, rule: str, longest: int, unit: str = "characters") -> list[str]:
    found = [f"must be no more than {longest} {unit}"] if len(text) > longest else []
    return found if re.fullmatch(pattern, text) else [*found, rule]


def label_faults(text: str) -> list[str]:
    """A DNS label of RFC 1123: names of containers, volumes, namespaces."""
    return _shaped(text, _LABEL, LABEL_RULE, 63)


def dns_1035_faults(text: str) -> list[str]:
    """A DNS label that begins with a letter: names of kinds and versions."""
    return _shaped(text, _DNS_1035, DNS_1035_RULE, 63)


def subdomain_faults(text: str) -> list[str]:
    """Labels with dots between them: most names of objects."""
    return _shaped(text, _SUBDOMAIN, SUBDOMAIN_RULE, 253)


def qualified_faults(text: str) -> list[str]:
    """A key of labels, taints, resources: a name that a domain and a slash may precede."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        domain = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_QUALIFIED_WORDS} {domain}"]
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif prefix:
        found += [f"prefix part {rule}" for rule in subdomain_faults(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not re.fullmatch(_QUALIFIED, name):
        found.append(f"name part {_QUALIFIED_WORDS}")
    return found


def label_value_faults(text: str) -> list[str]:
    """The value of a label."""
    return _shaped(text, _LABEL_VALUE, LABEL_VALUE_RULE, 63, "bytes")


def config_key_faults(text: str) -> list[str]:
    """A key of a ConfigMap or Secret, which is a file's name when mounted."""
    return _shaped(text, _CONFIG_KEY, CONFIG_KEY_RULE, 253)


def env_name_faults(text: str) -> list[str]:
    """The name of an environment variable."""
    return [] if _ENV_NAME.fullmatch(text) else [ENV_NAME_RULE]


def port_name_faults(text: str) -> list[str]:
    """The name of a port."""
    found = []
    if len(text) > 15:
        found.append("must be no more than 15 characters")
    if not _PORT_NAME.fullmatch(text):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def ip_faults(text: str) -> list[str]:
    """An IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return [IP_RULE]
    return []


def cidr_faults(text: str) -> list[str]:
    """A range of IP addresses."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return [CIDR_RULE]
    return [] if "/" in text else [CIDR_RULE]
