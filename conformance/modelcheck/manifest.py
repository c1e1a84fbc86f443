"""Models: what to check of a spec, with which constants, and what must come out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from conformance import resources
from conformance.errors import DataError, UserError
from conformance.inputs import local_path, read_text
from conformance.modelcheck.form import SCHEMA, Check, Expect, ManifestFile, Tier
from conformance.modelcheck.inheritance import read_form, resolved, spec_file, spec_places
from conformance.modelcheck.names import bundled_manifests, hint, model_name
from conformance.tla import ModelConfig, Value, format_value, parse_config

MODEL_VALUES = (
    'A model value needs TLC\'s configuration: write `config = "Spec.cfg"` in the manifest, in '
    "place of `[constants]` and `[check]`, and `CONSTANT Nodes = {n1, n2}` in that file."
)
"""What a manifest cannot say itself."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model. `expect` is None for a user's own module and configuration."""

    name: str
    origin: Path
    """The manifest or .cfg that it comes from."""
    spec_path: Path
    check: Check
    expect: Expect | None = None
    config: Path | None = None
    """TLC's configuration, if that says what to check and with which constants."""
    system: str = ""
    description: str = ""
    tier: Tier = "ci"
    variant: str = ""
    feeds_suite: bool = False
    mutant: str = ""
    labels: Mapping[str, str | int] = field(default_factory=dict)
    """What its authors sort their models by; nothing here depends on them."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """TLA+ expressions, by constant."""
    literals: Mapping[str, Value] = field(default_factory=dict)
    """Constants whose value a .cfg states; disjoint from `constants`."""
    definitions: Mapping[str, str] = field(default_factory=dict)
    """Operators that the model adds: `name(params)` to body."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    scoped: tuple[str, ...] = ()
    """Constants and overrides that hold in one module's text only, as a .cfg writes them."""
    own_text: bool = False
    """Whether it names a LOCAL operator, which no module that extends the spec can see."""
    postconditions: tuple[str, ...] = ()
    """What must be true after a search, of a .cfg: only a TLC after 2.15 checks it."""
    ignored: tuple[str, ...] = ()
    """Entries of a .cfg that no engine here follows: ALIAS."""
    situations: tuple[str, ...] = ()
    likely_states: int = 0
    """About how many, where nothing is expected; 0: nobody knows. For the order and TLC's JVM."""

    @property
    def spec(self) -> str:
        """The name of the spec's root module."""
        return self.spec_path.stem

    @property
    def stated_in(self) -> Path:
        """The file that says what to check and with which constants."""
        return self.config or self.origin

    @property
    def feeds_no_suite(self) -> str:
        """Why its state graph does not become tests; empty if it does."""
        if self.feeds_suite:
            return ""
        if self.check.symmetry or self.check.view:
            return "SYMMETRY and VIEW merge states, so it feeds no suite: take them out"
        if self.check.simulation is not None:
            return "it is simulated, so it has no state graph and feeds no suite"
        return f"it feeds no suite: set `feeds_suite = true` in {near(self.origin)}"

    def driving(self) -> Model:
        """The same model; one without a manifest, which cannot say so, feeds a suite if it may."""
        merges = self.check.symmetry or self.check.view
        return self if self.origin.suffix == ".toml" or merges else replace(self, feeds_suite=True)

    @property
    def search(self) -> tuple[Path, ...]:
        """Where its modules are: beside the root, then kconform's own, which any may extend."""
        return tuple(dict.fromkeys((self.spec_path.parent, resources.spec_dir().resolve())))


def load_model(path: Path) -> Model:
    """The model in a manifest file; UserError that names file and key if it is not one."""
    manifest = read_form(path, resolved(path))
    spec = _find_spec(path, manifest.spec)
    bounds = _of_config(path, manifest, spec) if manifest.config else _of_manifest(path, manifest)
    _validate(path, manifest, bounds.check)
    return replace(
        bounds,
        name=model_name(path),
        origin=path,
        spec_path=spec,
        expect=manifest.expect,
        system=manifest.system,
        description=manifest.description,
        tier=manifest.tier,
        variant=manifest.variant,
        feeds_suite=manifest.feeds_suite,
        mutant=manifest.mutant,
        labels=manifest.labels,
        situations=manifest.situations.names,
    )


def whole_manifest(model: Model) -> dict[str, object]:
    """All that a model's manifest and its bases say, in the order of docs/models.md."""
    if model.origin.suffix != ".toml":
        raise UserError(f"{reference(model)} has no manifest. Name a model that has one.")
    table = resolved(model.origin)
    return {key: table[key] for key in ManifestFile.__struct_fields__ if key in table}


def _of_manifest(path: Path, manifest: ManifestFile) -> Model:
    """What to check, and with which constants, as the manifest itself says it."""
    return Model(
        name=path.stem,
        origin=path,
        spec_path=path,
        check=manifest.check,
        constants=_expressions(path, "constants", manifest.constants),
        definitions=_expressions(path, "definitions", manifest.definitions),
        overrides=manifest.overrides,
    )


def _of_config(path: Path, manifest: ManifestFile, spec: Path) -> Model:
    """The same as TLC's configuration says it; UserError if the manifest says some of it too."""
    for key in ("check", "constants", "definitions", "overrides"):
        if getattr(manifest, key) != getattr(ManifestFile(SCHEMA, ""), key):
            raise UserError(
                f"{path}: `config` names {manifest.config}, which says what to check and with "
                f"which constants; so `{key}` has no place here. Remove one of the two."
            )
    return model_from_config(spec, path.parent / manifest.config)


def _expressions(path: Path, key: str, values: Mapping[str, object]) -> dict[str, str]:
    """TLA+ expressions by name: TOML's integers and booleans are as good as strings."""
    return {name: _expression(f"{path}: `{key}.{name}`", value) for name, value in values.items()}


def _expression(where: str, value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case list():
            text = ", ".join(
                f'"{value}"' if isinstance(value, str) else str(value) for value in value
            )
            raise UserError(
                f"{where} is a TOML array, which could be a set or a sequence. Write the one that "
                f"you mean as a string: '{{{text}}}' or '<<{text}>>'."
            )
        case _:
            raise UserError(
                f"{where} is a TOML {type(value).__name__}. Write a TLA+ expression as a string, "
                "or an integer or a boolean."
            )


def model_from_config(module: Path, config: Path) -> Model:
    """A model of the user's own module and .cfg; there is nothing that it is expected to say."""
    if not module.is_file():
        raise UserError(f"There is no TLA+ module {module}. Name an existing .tla file.")
    try:
        text = read_text(config)
    except DataError as error:
        raise DataError(f"{error} Name TLC's .cfg file of {module.name} with --config.") from error
    read = parse_config(text, source=str(config))
    return Model(
        name=module.stem,
        origin=config,
        config=config,
        spec_path=module.resolve(),
        check=Check(
            specification=read.specification or "",
            init=read.init or "",
            next=read.next or "",
            invariants=read.invariants,
            properties=read.properties,
            constraints=read.constraints,
            action_constraints=read.action_constraints,
            symmetry=read.symmetry or "",
            view=read.view or "",
            deadlock=read.check_deadlock,
        ),
        literals=dict(read.constants),  # a model goes to other processes; no proxy does
        overrides={
            override.name: override.operator
            for override in read.overrides
            if override.module is None
        },
        scoped=(
            *(f"{o.name} <- [{o.module}]{o.operator}" for o in read.overrides if o.module),
            *(f"{o.name} = [{o.module}]{format_value(o.value)}" for o in read.scoped_values),
        ),
        own_text=_names_what_is_local(module, read),
        postconditions=read.postconditions,
        ignored=read.ignored,
    )


def _names_what_is_local(module: Path, config: ModelConfig) -> bool:
    text = module.read_text(encoding="utf-8", errors="replace")
    named = {config.specification, config.init, config.next, config.symmetry, config.view}
    named |= {*config.invariants, *config.properties, *config.constraints}
    named |= {*config.action_constraints, *(override.operator for override in config.overrides)}
    return not named.isdisjoint(re.findall(r"\bLOCAL\s+(\w+)", text))


def _validate(path: Path, manifest: ManifestFile, check: Check) -> None:
    """The rules that tie one key to another; a configuration's own are checked with its module."""
    expect = manifest.expect
    if not manifest.config and bool(check.specification) == bool(check.init or check.next):
        raise UserError(
            f"{path}: `check` needs either `specification`, or `init` and `next`, not both."
        )
    if not manifest.config and bool(check.init) != bool(check.next):
        raise UserError(f"{path}: `check.init` and `check.next` go together; one is missing.")
    if expect.result == "violated" and not expect.violated:
        raise UserError(
            f"{path}: `expect.result` is violated, so `expect.violated` must name the formula."
        )
    if expect.result != "violated" and (expect.violated or expect.counterexample_length):
        raise UserError(
            f"{path}: `expect.result` is {expect.result}, so `expect.violated` and "
            "`expect.counterexample_length` say nothing: remove them."
        )
    if expect.result != "violated" and (expect.result == "holds") == bool(check.simulation):
        raise UserError(
            f'{path}: a model with `check.simulation` that finds no violation is "not exhausted", '
            'one without it "holds": make `expect.result` fit.'
        )
    checked = {*check.invariants, *check.properties, "deadlock"}
    if expect.violated and expect.violated not in checked:
        raise UserError(
            f"{path}: `expect.violated` names {expect.violated}, which is neither in "
            "`check.invariants` nor in `check.properties`."
        )
    if manifest.feeds_suite and (check.symmetry or check.view or check.simulation):
        raise UserError(
            f"{path}: a model with `check.symmetry` or `check.view` merges states, one with "
            "`check.simulation` leaves some out, so it cannot feed a suite: set "
            "`feeds_suite = false`."
        )


def _find_spec(path: Path, spec: str) -> Path:
    if (place := spec_file(path, spec)) is not None:
        return place
    raise UserError(
        f"{path}: `spec` names {spec}, but there is no "
        f"{' and no '.join(map(str, spec_places(path, spec)))}."
    )


def find_models(names: Sequence[str] = (), tier: Tier | None = None) -> list[Model]:
    """The named models, or all that belong to kconform; of one tier if given.

    A name is a manifest's path, a model's name, its last part, a folder of models, or what
    `reference` gives. Named models are taken whatever their tier. Sorted by name; UserError for
    a name that fits none.
    """
    if not names:
        models = [load_model(path) for path in bundled_manifests().values()]
        return [model for model in models if tier in (None, model.tier)]
    result: dict[str, Model] = {}
    for name in names:
        if not name.strip():
            raise UserError("A model's name is empty. Name a model, or a folder of models.")
        if _of_module(name) is None:
            result.update((str(path), load_model(path)) for path in _paths_of(name))
        else:
            result[name] = _module_model(name)
    return list(result.values())


def reference(model: Model) -> str:
    """A name by which `find_models` finds the model again from the current folder.

    The model's name if it belongs to kconform, else its manifest's path; for a module and
    configuration without a manifest `Spec.tla`, or `Spec.tla:Other.cfg` where the configuration
    is not the one beside the module.
    """
    if model.origin.suffix != ".toml":  # what is overridden expects nothing, and has a manifest
        module = near(model.spec_path)
        beside = model.origin.resolve() == model.spec_path.with_suffix(".cfg")
        return module if beside else f"{module}:{near(model.origin)}"
    own = model.origin.resolve().is_relative_to(resources.models_dir().resolve())
    return model.name if own else near(model.origin)


def near(path: Path) -> str:
    """The path from the current folder if it lies below, else the whole path."""
    resolved, here = path.resolve(), Path.cwd().resolve()
    return str(resolved.relative_to(here) if resolved.is_relative_to(here) else resolved)


def _of_module(name: str) -> tuple[str, str] | None:
    """Module and configuration of a name that has the form of one without a manifest."""
    module, text, config = name.rpartition(".tla:")
    if text:
        return f"{module}.tla", config
    return (name, "") if name.endswith(".tla") else None


def _module_model(name: str) -> Model:
    module, config = _of_module(name) or (name, "")
    spec = local_path(module)
    return model_from_config(spec, local_path(config) if config else spec.with_suffix(".cfg"))


_SETTINGS = ("kconform.toml", "pyproject.toml")
"""What a folder of models may hold that is none."""


def _paths_of(name: str) -> list[Path]:
    file = Path(name)
    if file.suffix == ".toml" and file.is_file():
        return [file]
    if file.is_dir():
        paths = sorted(path for path in file.rglob("*.toml") if path.name not in _SETTINGS)
        if paths:
            return paths
    known = bundled_manifests()
    if name in known:
        return [known[name]]
    paths = [
        path
        for full, path in known.items()
        if full.startswith(f"{name.rstrip('/')}/") or full.rpartition("/")[2] == name
    ]
    if paths:
        return paths
    raise UserError(
        f"There is no model {name}.{hint(name, known)} Give the path of a manifest below models/, "
        "without its .toml, or the path of a manifest of your own."
    )
