"""Finds the spec and the models, in a checkout as in an installed wheel."""

from __future__ import annotations

from pathlib import Path

from conformance.errors import EnvironmentProblem

_PACKAGE = Path(__file__).resolve().parent


def installed_data() -> Path | None:
    """The folder in which a wheel carries what a checkout has at its top; None in a checkout."""
    folder = _PACKAGE / "_data"
    return folder if folder.is_dir() else None


def resource_root() -> Path:
    """The folder of `spec/`, `models/` and `impl/`: the wheel's own data, or the checkout."""
    for root in (_PACKAGE / "_data", _PACKAGE.parent):
        if (root / "spec").is_dir() and (root / "models").is_dir():
            return root
    raise EnvironmentProblem(
        "The specifications that belong to kconform were not found beside its code: the "
        "installation is incomplete. Reinstall it with `pip install --force-reinstall "
        "kafka-conformance`, or from a complete checkout with `pip install .`."
    )


def spec_dir() -> Path:
    """The folder of the TLA+ modules."""
    return resource_root() / "spec"


def implementation_dir() -> Path:
    """The folder of the bundled implementation, the package `impl`."""
    return resource_root() / "impl"


def models_dir() -> Path:
    """The folder of the model manifests."""
    return resource_root() / "models"
