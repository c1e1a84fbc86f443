"""A specification ready to run: initial states, successors, formulas."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

from conformance.tla.errors import SpecError, UnsupportedError
from conformance.tla.front import syntax as s
from conformance.tla.front.config import ModelConfig
from conformance.tla.python.behaviours import BehaviourReader
from conformance.tla.python.branches import Branches
from conformance.tla.python.explain import Explainer, Explanation
from conformance.tla.python.footprint import Footprint, footprint
from conformance.tla.python.formulas import (
    ActionBranches,
    ActionFormula,
    Property,
    StateFormula,
)
from conformance.tla.python.labels import ActionInstance, ActionLister
from conformance.tla.python.machine import Instance, Machine, Search, Successor
from conformance.tla.python.scope import Kind, kind_of
from conformance.tla.python.selection import Selection, SharedSearch, TracedAction
from conformance.tla.python.session import TlcSession
from conformance.tla.semantics.analysis import IMPURE, RECURSIVE
from conformance.tla.semantics.behaviours import TRUE, StepPredicate, Temporal, all_of
from conformance.tla.semantics.equality import Unforced, value_of
from conformance.tla.semantics.errors import EvaluationError
from conformance.tla.semantics.program import Program, link
from conformance.tla.semantics.temporal import TemporalReader
from conformance.tla.values import Action, State, Value
from conformance.tla.values.patterns import ActionPattern
from conformance.tla.values.text import parse_action


def bind(module: s.Module, config: ModelConfig) -> Spec:
    """The module with the configuration's constants and overrides.

    SpecError names a CONSTANT without a value, or a name in the configuration that the module
    lacks.
    """
    spec = Spec(link(module, config))
    spec.check_names()
    spec.check_constants()
    return spec


_T = TypeVar("_T")


class Spec:
    """A bound module. Formulas and the successor search are compiled when first asked for.

    What has no value is asked again of a `patient` machine, so that no value depends on the order
    in which Python happens to take the elements of a set.
    """

    def __init__(
        self, program: Program, *, patient: bool = False, session: TlcSession | None = None
    ) -> None:
        self.program = program
        self.module = program.module
        self.config = program.config
        self.variables = tuple(variable.name for variable in program.module.variables)
        self.session = session or TlcSession(deadlock=program.config.check_deadlock)
        self.machine = Machine(program, self.session, patient=patient)
        self._state_formulas: dict[str, StateFormula] = {}
        self._action_formulas: dict[str, tuple[s.Definition, Callable[..., bool]]] = {}
        self._branch_places: dict[str, Branches] = {}
        self._branch_calls: dict[str, Callable[..., int]] = {}
        self._compiled_searches: dict[tuple[object, ...], Search] = {}
        self._claims = itertools.count()

    @cached_property
    def _patient(self) -> Spec:
        return Spec(self.program, patient=True, session=self.session)

    def _settled(self, compiled: Callable[[Machine], Callable[..., _T]]) -> Callable[..., _T]:
        """What the machine compiles; where it finds no value, the same of a patient machine."""
        fast = compiled(self.machine)
        if self.machine.patient:
            return fast
        patient: list[Callable[..., _T]] = []

        def call(*args: object) -> _T:
            mark = self.session.mark()
            try:
                return fast(*args)
            except EvaluationError:
                self.session.undo(mark)
                if not patient:
                    patient.append(compiled(self._patient.machine))
                return patient[0](*args)

        return call

    # --- what the module and configuration say --------------------------------------------

    def check_names(self) -> None:
        """SpecError if the configuration names a formula that the module does not define."""
        config = self.config
        for why, names in (
            ("an invariant", config.invariants),
            ("a property", config.properties),
            ("a constraint", (*config.constraints, *config.action_constraints)),
            ("the specification", [config.specification] if config.specification else []),
            ("the initial predicate", [config.init] if config.init else []),
            ("the next-state relation", [config.next] if config.next else []),
            ("the symmetry set", [config.symmetry] if config.symmetry else []),
            ("the view", [config.view] if config.view else []),
        ):
            for name in names:
                self.program.operator(name, why)

    def check_constants(self) -> None:
        """SpecError if a CONSTANT is replaced by an operator that needs a state to have a value.

        The rule is TLC's: an operator without arguments is evaluated before there is a state, and
        may mention variables only where that evaluation does not come to them.
        """
        declared = {constant.name for constant in self.module.constants}
        for override in self.config.overrides:
            if override.name not in declared or override.module is not None:
                continue
            meaning = self.program.constants[override.name]
            if not isinstance(meaning, s.Definition) or meaning.params:
                continue
            facts = self.machine.analysis.of(meaning.body)
            if not facts.variables and not facts.primes and "TLCGet" not in facts.impure:
                continue
            try:
                value_of(self._expression_of(meaning.body)((), ()))
            except EvaluationError as error:
                read = ", ".join(sorted(facts.variables)) or error.reason
                raise SpecError(
                    f"{self.config.source or self.module.name} replaces the CONSTANT "
                    f"{override.name} by {override.operator}, which has no value before there is "
                    f"a state: it depends on {read}. Replace it by a constant, or make "
                    f"{override.name} a definition of the module."
                ) from None

    @cached_property
    def _reader(self) -> TemporalReader:
        return self.program.temporal_reader()

    @cached_property
    def has_behaviours(self) -> bool:
        """False of a module without variables, which only assumes, whatever is to begin it."""
        return bool(self.variables)

    @cached_property
    def _init_and_next(self) -> tuple[s.Expr, s.Definition]:
        config = self.config
        if config.specification is not None:
            return self._from_specification(config.specification)
        init = self.program.operator(config.init or "Init", "the initial predicate")
        return init.body, self.program.operator(config.next or "Next", "the next-state relation")

    def _from_specification(self, name: str) -> tuple[s.Expr, s.Definition]:
        definition = self.program.operator(name, "the specification")
        parts = self._reader.parts(definition.body)  # fairness says nothing about single steps
        if len(parts.steps) != 1 or parts.always or not parts.initial:
            raise UnsupportedError(
                f"{definition.location}: the specification {name} is not of the form Init /\\ "
                "[][Next]_vars, perhaps with fairness. Give INIT and NEXT in the configuration."
            )
        return self._joined(parts.initial), self._named(_unboxed(parts.steps[0]))

    def _named(self, step: s.Expr) -> s.Definition:
        meaning = self.program.meaning(step)
        if isinstance(meaning, s.Definition) and not meaning.params:
            return meaning
        return s.Definition(step.location, 0, _UNNAMED, (), step)

    def _joined(self, parts: Sequence[s.Expr]) -> s.Expr:
        return parts[0] if len(parts) == 1 else s.Builtin(parts[0].location, r"\land", tuple(parts))

    def is_temporal(self, node: s.Argument) -> bool:
        """Whether a formula is temporal, itself or through the operators it calls."""
        return self._reader.temporal(node)

    # --- states ---------------------------------------------------------------------------

    def search_at(self, level: int | None) -> None:
        """What TLCGet("level") is from now on: 0 for initial states; None outside of a search.

        What was printed until then is shown.
        """
        self.session.settle()
        self.session.level = level

    @cached_property
    def impure(self) -> bool:
        """Whether anything of the specification prints, remembers or draws at random."""
        analysis = self.machine.analysis
        bodies = (definition.body for definition in self.module.definitions.values())
        return any(analysis.of(body).impure & (IMPURE - {"TLCGet"}) for body in bodies)

    @cached_property
    def depends_on_search(self) -> bool:
        """Whether its states and steps depend on more than the state, as by TLCGet("level")."""
        analysis, (init, step) = self.machine.analysis, self._init_and_next
        bounds = (*self.config.constraints, *self.config.action_constraints)
        bodies = (self.program.operator(name, "a constraint").body for name in bounds)
        return any(analysis.of(body).impure - {RECURSIVE} for body in (init, step.body, *bodies))

    def says_of_states(self, formula: str) -> bool:
        """Whether a formula reads a variable, or is not the same at every place of a search."""
        facts = self.machine.analysis.of(self.program.operator(formula, "a formula").body)
        return bool(facts.variables or facts.primes or facts.impure - {RECURSIVE})

    def formulas_use(self, formulas: Collection[str], operator: str) -> bool:
        """Whether the value of one of these formulas may depend on an operator of the module."""
        definition = self.module.operator(operator)
        if definition is None:
            return False
        reached = (
            self.machine.analysis.reached(self.program.operator(name, "a formula").body)
            for name in formulas
        )
        return operator in formulas or any(definition.uid in uids for uids in reached)

    def initial_states(self) -> Sequence[State]:
        """The initial states, each once, in a fixed order."""
        return tuple(dict.fromkeys(self.generated_initial_states()))

    def generated_initial_states(self) -> Sequence[State]:
        """The initial states as the initial predicate gives them: one that it finds in several
        ways is listed several times, as TLC counts it."""
        if not self.has_behaviours:
            return ()
        init = self._init_and_next[0]
        return self._settled(lambda machine: partial(machine.initial_states, init))()

    @cached_property
    def _lister(self) -> ActionLister:
        return ActionLister(self.machine)

    @cached_property
    def _instances(self) -> tuple[ActionInstance, ...]:
        if not self.has_behaviours:
            return ()
        return tuple(self._lister.instances(self._init_and_next[1]))

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """Every action instance of the next-state relation, in TLC's order, each once."""
        return tuple(dict.fromkeys(reached.action for reached in self._instances))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The names of the actions; needs no list of their instances."""
        return tuple(self._lister.kinds(self._init_and_next[1]))

    @cached_property
    def all_kinds(self) -> tuple[str, ...]:
        """As `kinds`, with the actions that have no instance because a constant set is empty."""
        if not self.has_behaviours:
            return ()
        return tuple(self._lister.kinds(self._init_and_next[1], without_instances=True))

    @cached_property
    def _shared_searches(self) -> tuple[SharedSearch, ...]:
        return self._grouped(self._instances)

    def traced_actions(self) -> tuple[TracedAction, ...]:
        """Every action instance, in the order in which `successors` takes them.

        None where the next-state relation depends on more than the state.
        """
        return self._traced(self._instances)

    def traced(self, patterns: Sequence[ActionPattern]) -> tuple[TracedAction, ...]:
        """The same of the instances that the patterns admit; errors as of `select`."""
        return self._traced(self._matching(patterns))

    def _traced(self, instances: Sequence[ActionInstance]) -> tuple[TracedAction, ...]:
        step = self._init_and_next[1]
        if self.machine.analysis.of(step.body).impure - {RECURSIVE}:
            return ()
        return tuple(
            TracedAction((instance,), item.search, other.search)
            for item, other in zip(
                self._grouped(instances, self._tracer), self._grouped(instances), strict=True
            )
            for instance in item.instances
        )

    def footprints(
        self, patterns: Sequence[ActionPattern], most: int
    ) -> Mapping[Action, Footprint] | None:
        """What the instances that the patterns admit may read or change, by their names.

        None if there are more of them, or where the next-state relation depends on more than the
        state; errors as of `select`.
        """
        analysis, result = self.machine.analysis, dict[Action, Footprint]()
        instances = self._matching(patterns)
        depends = analysis.of(self._init_and_next[1].body).impure - {RECURSIVE}
        if depends or len(instances) > most:
            return None
        for instance in instances:
            places = footprint(self.program, analysis, instance)
            known = result.get(instance.action)
            result[instance.action] = places if known is None else known.joined(places)
        return result

    @cached_property
    def _tracer(self) -> Machine:
        return Machine(self.program, self.session, traced=True)

    def _grouped(
        self, instances: Sequence[ActionInstance], machine: Machine | None = None
    ) -> tuple[SharedSearch, ...]:
        groups: dict[tuple[object, ...], list[ActionInstance]] = {}
        for reached in instances:
            operators = tuple(map(id, reached.operators.values()))
            key = (id(reached.node), reached.action.name, operators)
            groups.setdefault(key, []).append(reached)
        return tuple(
            self._shared_search(group, machine or self.machine) for group in groups.values()
        )

    def _shared_search(self, group: list[ActionInstance], machine: Machine) -> SharedSearch:
        first = group[0]
        of = self.machine.analysis.of
        free = of(first.node).free.union(*(of(arg).free for arg in first.operators.values()))
        names = [bound for uid, bound in first.names.items() if uid in free]
        rows = [tuple(reached.values[name.uid] for name in names) for reached in group]
        kinds = [_common_kind([row[index] for row in rows]) for index in range(len(names))]
        key = (
            id(machine), id(first.node), first.action.name,
            tuple(name.uid for name in names), tuple(kinds),
            tuple(map(id, first.operators.values())),
        )  # fmt: skip
        if key not in self._compiled_searches:
            self._compiled_searches[key] = machine.successors(
                first.node, names, kinds, first.action.name, first.operators
            )
        search = self._compiled_searches[key]
        instances = [(*row, reached.action) for row, reached in zip(rows, group, strict=True)]
        return SharedSearch(search, tuple(instances))

    def select(self, patterns: Sequence[ActionPattern]) -> Selection:
        """The instances that the patterns admit, each once; what they say is not enumerated.

        Needs no list of all actions, of which large constants have too many. SpecError names an
        action that the next-state relation lacks, TooManyInstances one that leaves too much open.
        """
        return Selection(tuple(patterns), self._grouped(self._matching(patterns)))

    def _matching(self, patterns: Sequence[ActionPattern]) -> list[ActionInstance]:
        result: dict[Action, list[ActionInstance]] = {}
        for pattern in patterns:
            for reached in self._lister.matching(self._init_and_next[1], pattern):
                others = result.setdefault(reached.action, [])
                if all(other.node is not reached.node or other.values != reached.values
                       for other in others):  # fmt: skip
                    others.append(reached)
        return [reached for group in result.values() for reached in group]

    def successors_in(self, selection: Selection, state: State) -> list[Successor]:
        """Every (action, next state) of the selected instances, in a fixed order."""
        successors: list[Successor] = []
        mark = self.session.mark()
        try:
            for shared in selection.searches:
                self.machine.guarded(shared.search, state, successors, shared.instances)
        except EvaluationError:
            if self.machine.patient:
                raise
            self.session.undo(mark)
            patient = self._patient
            return patient.successors_in(patient.select(selection.patterns), state)
        return successors

    def successors(self, state: State) -> list[Successor]:
        """Every (action, next state) that the next-state relation allows, as TLC finds them.

        In a fixed order; a pair that is found twice is listed twice, as TLC counts it.
        """
        successors: list[Successor] = []
        mark = self.session.mark()
        try:
            self.machine.guarded(self._search, state, successors)
        except EvaluationError:
            if self.machine.patient:
                raise
            self.session.undo(mark)
            return self._patient.successors(state)
        return successors

    def _search(self, state: State, result: list[Successor]) -> None:
        for shared in self._shared_searches:
            shared.search(state, result, shared.instances)

    def successors_by(self, action: Action, state: State) -> list[State]:
        """The states to which one action instance leads."""
        result: list[Successor] = []
        mark = self.session.mark()
        try:
            for shared, instances in self._by_action.get(action, ()):
                self.machine.guarded(shared.search, state, result, instances)
        except EvaluationError:
            if self.machine.patient:
                raise
            self.session.undo(mark)
            return self._patient.successors_by(action, state)
        return [next_state for _, next_state in result]

    @cached_property
    def _by_action(self) -> Mapping[Action, list[tuple[SharedSearch, tuple[Instance, ...]]]]:
        table: dict[Action, list[tuple[SharedSearch, tuple[Instance, ...]]]] = {}
        for shared in self._shared_searches:
            for instance in shared.instances:
                action = instance[-1]
                assert isinstance(action, Action)
                table.setdefault(action, []).append((shared, (instance,)))
        return table

    # --- formulas -------------------------------------------------------------------------

    def state_formula(self, name: str) -> StateFormula:
        """The formula of that name; UnsupportedError for a temporal or action formula."""
        if name not in self._state_formulas:
            definition = self._formula(name)
            if self.machine.analysis.of(definition.body).primes:
                raise UnsupportedError(
                    f"{definition.location}: {name} is a formula of two states (it has primes), "
                    "not of one. Use it as an action formula."
                )
            formula = self._state_formula(name, definition, definition.body)
            self._state_formulas[name] = formula
        return self._state_formulas[name]

    def _state_formula(self, name: str, definition: s.Definition, node: s.Expr) -> StateFormula:
        return StateFormula(
            name,
            definition,
            self._settled(lambda machine: machine.state_formula(node)),
            lambda state: self._explainer().explain(node, state, state),
        )

    def _formula(self, name: str) -> s.Definition:
        definition = self.program.operator(name, "a formula")
        if definition.params:
            raise SpecError(f"{definition.location}: {name} takes arguments; a formula takes none.")
        if self.is_temporal(definition.body):
            raise UnsupportedError(
                f"{definition.location}: {name} is a temporal formula, which the Python evaluator "
                "does not support. TLC checks it as a PROPERTY."
            )
        return definition

    def action_formula(self, what: str | Action) -> ActionFormula:
        """The formula of an action instance, an action, or a property `[][A]_v` by its name."""
        name, args = (what, ()) if isinstance(what, str) else (what.name, what.args)
        step, compiled = self._compiled_action(name)
        if len(args) != len(step.params):
            raise SpecError(
                f"{step.location}: {name} takes {len(step.params)} arguments, not {len(args)}."
            )
        values = {param.uid: value for param, value in zip(step.params, args, strict=True)}
        return ActionFormula(
            name,
            args,
            step,
            compiled,
            lambda state, after: self._explainer().explain(
                step.body, state, after, step.params, values
            ),
        )

    def _compiled_action(self, name: str) -> tuple[s.Definition, Callable[..., bool]]:
        if name not in self._action_formulas:
            definition = self.program.operator(name, "an action")
            step = self._step(definition)
            if any(param.arity for param in definition.params):
                raise UnsupportedError(
                    f"{definition.location}: {name} takes an operator as argument."
                )
            compiled = self._settled(lambda machine: machine.action_formula(step.body, step.params))
            self._action_formulas[name] = (step, compiled)
        return self._action_formulas[name]

    def branch_places(self, action: str) -> tuple[s.Location, ...]:
        """Where the disjuncts of an action stand; see `conformance.tla.python.branches`.

        None of an action that a LET defines: no name outside of it reaches its formula.
        """
        step = self._init_and_next[1]
        known = action == step.name or self.module.operator(action) is not None
        return self._branches_of(action).places if known else ()

    def _branches_of(self, action: str) -> Branches:
        if action not in self._branch_places:
            body = self._action(action).body
            self._branch_places[action] = Branches(self.program, self.machine.analysis, body)
        return self._branch_places[action]

    def _action(self, name: str) -> s.Definition:
        """The operator of that name; the next-state relation itself may have none."""
        step = self._init_and_next[1]
        return step if name == step.name else self.program.operator(name, "an action")

    def branches(self, action: Action) -> ActionBranches:
        """The disjuncts of an action instance, ready to be asked of steps."""
        branches = self._branches_of(action.name)
        return ActionBranches(branches.places, action.args, self._compiled_branches(action.name))

    def _compiled_branches(self, name: str) -> Callable[..., int]:
        if name not in self._branch_calls:
            step, branches = self._action(name), self._branches_of(name)
            self._branch_calls[name] = self._settled(
                lambda machine: machine.branches(branches, step.body, step.params)
            )
        return self._branch_calls[name]

    def reads(self, formula: str) -> tuple[int, ...]:
        """The positions of the variables that a formula's value depends on."""
        definition = self._step(self.program.operator(formula, "a formula"))
        names = self.machine.analysis.of(definition.body).variables
        return tuple(index for index, name in enumerate(self.variables) if name in names)

    def explain(self, formula: str, state: State, next_state: State) -> Explanation:
        """Why a formula is false: of one state, the next one, or of the step.

        `formula` is the name of a state formula or of a property, or an action with its arguments,
        as `str` of an `Action` gives it. Of a property the part that is false is explained.
        """
        try:
            return self.state_formula(formula).explain(next_state)
        except SpecError:
            action = parse_action(formula)
        definition = self.module.operator(action.name)
        if definition is None or not self.is_temporal(definition.body):
            return self.action_formula(action).explain(state, next_state)
        return self._explain_property(self.property_of(action.name), state, next_state)

    def _explain_property(self, what: Property, state: State, next_state: State) -> Explanation:
        explanations = []
        if what.always is not None:
            explanations.append(what.always.explain(next_state))
        if what.step is not None:
            explanations.append(what.step.explain(state, next_state))
        if what.initial is not None:
            explanations.append(what.initial.explain(next_state))
        if not explanations:
            raise UnsupportedError(
                f"{what.location}: {what.name} is about whole behaviours: no state or step alone "
                "shows why it is false."
            )
        return next(
            (explanation for explanation in explanations if explanation.value != "TRUE"),
            explanations[0],
        )

    def obstacle(self, action: Action, state: State) -> Explanation | None:
        """Why an action is not enabled in a state; None if no part of it alone says so."""
        formula = self.action_formula(action)
        params = formula.definition.params
        values = {p.uid: value for p, value in zip(params, action.args, strict=True)}
        return self._explainer().obstacle(formula.definition.body, state, params, values)

    def _explainer(self) -> Explainer:
        return Explainer(self._patient.machine, self.session)

    def _step(self, definition: s.Definition) -> s.Definition:
        """The action of a property `[][A]_v`, `[]P` among it, or the definition itself."""
        if not self.is_temporal(definition.body):
            return definition
        steps = self._reader.steps_of(definition, "the Python evaluator")
        return replace(definition, body=self._joined(steps))

    def property_of(self, name: str) -> Property:
        """A temporal property, taken apart into what a search can check and what it cannot."""
        definition = self.program.operator(name, "a property")
        parts = self._reader.parts(definition.body)
        return Property(
            name=name,
            location=definition.location,
            initial=self._judge_state(name, definition, parts.initial),
            always=self._judge_state(name, definition, parts.always),
            step=self._judge_step(name, definition, parts.steps),
            unchecked=tuple(part.location for part in parts.rest),
        )

    def behaviours_of(self, name: str) -> Temporal:
        """The part of a property that takes a whole behaviour to judge.

        UnsupportedError if it has a form that is not followed.
        """
        definition = self.program.operator(name, "a property")
        return self._behaviours(self._reader.parts(definition.body).rest)

    @cached_property
    def fairness(self) -> Temporal:
        """What the specification says of whole behaviours; nothing if there are INIT and NEXT."""
        if self.config.specification is None:
            return TRUE
        definition = self.program.operator(self.config.specification, "the specification")
        return self._behaviours(self._reader.parts(definition.body).rest)

    @property
    def is_fair(self) -> bool:
        """Whether the specification says anything of whole behaviours."""
        return self.fairness != TRUE

    def _behaviours(self, parts: Sequence[s.Expr]) -> Temporal:
        reader = BehaviourReader(
            self._reader, self.machine.analysis, self._claim, self._elements, self._claims
        )
        return all_of(map(reader.formula, parts))

    def _claim(
        self, node: s.Expr, names: Sequence[s.Bound], values: Sequence[Value]
    ) -> StepPredicate:
        call = self._settled(lambda machine: machine.action_formula(node, names))
        return lambda state, after: call(state, after, *values)

    def _elements(self, node: s.Expr, names: Sequence[s.Bound], values: Sequence[Value]) -> Value:
        return value_of(self.machine.expression(node, names)((), (), *values))

    def _judge_state(
        self, name: str, definition: s.Definition, parts: Sequence[s.Expr]
    ) -> StateFormula | None:
        return self._state_formula(name, definition, self._joined(parts)) if parts else None

    def _judge_step(
        self, name: str, definition: s.Definition, parts: Sequence[s.Expr]
    ) -> ActionFormula | None:
        if not parts:
            return None
        node = self._joined(parts)
        call = self._settled(lambda machine: machine.action_formula(node))
        return ActionFormula(
            name,
            (),
            replace(definition, body=node),
            call,
            lambda state, after: self._explainer().explain(node, state, after),
        )

    def value(self, name: str) -> Value:
        """The value of a CONSTANT or of a constant operator without arguments."""
        if name in self.program.constants:
            meaning = self.program.constants[name]
            if not isinstance(meaning, s.Definition):
                return meaning
            definition = meaning
        else:
            definition = self.program.operator(name, "a constant")
        return self._function_of(definition)(())

    def state_function(self, name: str) -> Callable[[State], Value]:
        """The value of a state function, such as a VIEW, in a state."""
        definition = self.program.operator(name, "a state function")
        return self._function_of(definition)

    def operator_function(self, name: str) -> Callable[..., Value]:
        """A constant operator with parameters as a function of its arguments."""
        definition = self.program.operator(name, "an operator")
        if any(param.arity for param in definition.params):
            raise UnsupportedError(f"{definition.location}: {name} takes an operator as argument.")
        compiled = self._settled(
            lambda machine: machine.expression(definition.body, definition.params)
        )
        return lambda *arguments: value_of(compiled((), (), *arguments))

    def constant_set(self, node: s.Expr) -> Unforced | None:
        """The value of a constant expression, a set perhaps kept as a rule; None if it is none."""
        if not self.machine.analysis.of(node).constant:
            return None
        return self._expression_of(node)((), ())

    def _function_of(self, definition: s.Definition) -> Callable[[State], Value]:
        compiled = self._expression_of(definition.body)

        def value(state: State) -> Value:
            value = compiled(state, ())
            try:
                return value_of(value)
            except EvaluationError as error:  # of a set that is kept as a rule
                raise EvaluationError(error.reason, error.location or definition.location) from None

        return value

    def _expression_of(self, node: s.Expr) -> Callable[..., Unforced]:
        return self._settled(lambda machine: machine.expression(node))

    def false_assumptions(self) -> list[s.Assumption]:
        """The module's ASSUMEs that are false for these constants."""
        self.session.level = 0  # as TLC has it before there is a state
        try:
            return [
                assumption
                for assumption in self.module.assumptions
                if self._expression_of(assumption.body)((), ()) is not True
            ]
        finally:
            self.search_at(None)

    def explain_assumption(self, assumption: s.Assumption) -> Explanation:
        """Why an ASSUME has the value that it has for these constants."""
        return self._explainer().explain(assumption.body, (), ())


def _unboxed(step: s.Expr) -> s.Expr:
    """A of `[A]_v`."""
    if isinstance(step, s.Builtin) and step.operator == "[A]_v":
        action = step.args[0]
        assert not isinstance(action, s.OperatorArg)
        return action
    return step


_UNNAMED = "UnnamedAction"
"""TLC's label of a step that is not within an operator."""


def _common_kind(values: Sequence[Value]) -> Kind:
    kinds = {kind_of(value) for value in values}
    return kinds.pop() if len(kinds) == 1 else None
