"""Map the repository's top-level folders onto ``volcano_py.<folder>``.

Every folder with an ``__init__.py`` is a room of the product, apart from the ones named in
``NOT_PRODUCT``; a new room or sub-package is picked up without a list to edit. All else about the
project is declared in pyproject.toml.
"""

from setuptools import find_packages, setup

NAMESPACE = "volcano_py"
NOT_PRODUCT = ("tests", "benchmarks", "examples", "docs", "typings", "build", "dist")

packages = find_packages(exclude=[pattern for name in NOT_PRODUCT for pattern in (name, f"{name}.*")])
rooms = [package for package in packages if "." not in package]

setup(
    packages=[f"{NAMESPACE}.{package}" for package in packages],
    package_dir={f"{NAMESPACE}.{room}": room for room in rooms},
)
