"""Stage `deviations`: is each deviation of a system's table where the table says it is?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from conformance.deviations.declared import deviating
from conformance.deviations.table import Deviating, Deviation, concerning
from conformance.registry import factory_path, system_name
from conformance.stages.context import Context, bench_maker, stage
from conformance.stages.presence import DeviationResult, Presence
from conformance.verdict import Verdict

STAGE = "deviations"


def deviations(
    context: Context,
    system: str,
    specifications: Collection[str] = (),
    replayed: Collection[str] = (),
) -> list[DeviationResult]:
    """Replay the path of every deviation in the system's table; PASS if the table is right.

    With root modules given: of those that concern one of them. Those that were `replayed` before,
    by their ids, are left out; if no other is left, nothing is said. Where a deviation is seen, its
    consequence, if it has one, is replayed too: a counterexample of the model that it overrides.
    Of a release that the table does not name, what is seen is news and no failure.
    """
    path = factory_path(system, context.settings.systems)
    known = deviating(path)
    if known is not None and not any(map(_to_replay(replayed), known.deviations())):
        return []  # all are known; or a maker's own table, without a path that could be replayed
    with stage(context, STAGE, system_name(system)) as outcome:
        shown: list[DeviationResult] = []
        if known is not None:
            table = known.deviations()
            concerned = concerning(table, specifications) if specifications else table
            maker = bench_maker(context, system, known, concerned)
            shown = [
                context.presences.result(path, known, deviation, maker)
                for deviation in filter(_to_replay(replayed), concerned)
            ]
        wrong = [result for result in shown if not result.as_expected]
        # What cannot be driven on this release says nothing of it.
        news = [
            result
            for result in shown
            if result.expected is None and result.presence is not Presence.NOT_DRIVEN
        ]
        idle = shown and all(result.presence is Presence.NOT_DRIVEN for result in shown)
        agreed = Verdict.INCONCLUSIVE if idle else Verdict.PASS
        outcome.verdict = Verdict.FAIL if wrong else agreed
        outcome.summary = "; ".join(map(_line, shown)) or "no deviation is known of this system"
        if known is not None and news:
            outcome.summary += f"; {_news(known, news)}"
        outcome.figures = {
            "system": system,
            "deviations": {result.deviation.id: str(result.presence) for result in shown},
            "unexpected": [result.deviation.id for result in wrong],
            "news": [result.deviation.id for result in news],
        }
    return shown


def judged_with(context: Context, system: str, path: Path) -> tuple[str, ...] | None:
    """The ids by which a path of the system's table is judged on it; None for any other file.

    What another part of the system does otherwise is not what the path is about.
    """
    factory = factory_path(system, context.settings.systems)
    known = deviating(factory)
    if known is None:
        return None
    own = next((item for item in known.deviations() if _has_path(known, item, path)), None)
    if own is None:
        return None
    maker = bench_maker(context, system, known, (own,))
    shown = context.presences.result(factory, known, own, maker)
    return tuple(item.id for item in shown.judged_with)


def _has_path(known: Deviating, deviation: Deviation, path: Path) -> bool:
    return bool(deviation.path) and known.file(deviation.path).resolve() == path.resolve()


def _to_replay(replayed: Collection[str]) -> Callable[[Deviation], bool]:
    """Whether a deviation has a path, and that was not replayed yet."""
    return lambda deviation: bool(deviation.path) and deviation.id not in replayed


def _line(shown: DeviationResult) -> str:
    text = f"{shown.deviation.id} {shown.presence}"
    if shown.consequence:
        text += f", down to the violation of {shown.consequence}"
    if shown.reason:
        text += f" ({shown.reason})"
    if shown.deviation.mended:
        text += " (as claimed)" if shown.as_expected else " (claimed to be mended)"
    elif not shown.as_expected and shown.expected is not None:
        text += f" (the table says {'seen' if shown.expected else 'gone'})"
    return text


def _news(known: Deviating, news: Sequence[DeviationResult]) -> str:
    versions = dict.fromkeys(known.version_of(result.deviation.part) for result in news)
    return f"news of {', '.join(versions)}, which the table does not name"
