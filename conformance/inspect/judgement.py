"""One partition judged: its logs, its history, and what was exposed, by the specification."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.inspect.abstraction import (
    ABSENT,
    NOBODY,
    CacheEntry,
    PartitionMoment,
    RegisteredPartition,
    ReplicaState,
)
from conformance.inspect.attested import outdated
from conformance.inspect.comparison import (
    EpochDifference,
    cache_difference,
    differences,
    mismatches,
    missing,
    only_the_end_differs,
)
from conformance.inspect.copies import Copies
from conformance.inspect.exposure import (
    Exposure,
    epoch_starts,
    explained_by,
    exposures,
    held_below,
    merged,
)
from conformance.inspect.findings import Discovery, FindingNotes, UnjudgedSubject
from conformance.inspect.formulas import FalseFormula, FormulaTruth, ReplicationFormulas
from conformance.inspect.history import Registration
from conformance.inspect.partitions import EpochRun
from conformance.inspect.states import state_of
from conformance.inspect.subjects import InspectedPartition
from conformance.inspect.truncations import Truncation, truncations

_LOGS = ("LogMatching", "EpochCacheMatchesLog", "EpochsNonDecreasing", "HighWatermarkWithinLog")
_TOGETHER = (
    "KnownEpochIsRegistered",
    "CommittedNeverLost",
    "ElectableHasExposed",
    "OneExposedRecordPerOffset",
)
_RAFT = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class PartitionJudgement:
    """All that is told of one partition."""

    subject: InspectedPartition
    states: Mapping[str, ReplicaState]
    differences: tuple[EpochDifference, ...]
    exposed: tuple[Exposure, ...]
    truncations: tuple[Truncation, ...]
    starts: Mapping[int, int]
    truths: Mapping[str, bool | None]
    """By formula, of the moment at which the copies were made; None: no value, or not judged."""
    moment: PartitionMoment
    notes: FindingNotes


@dataclass(slots=True)
class PartitionJudge:
    """Judges partitions one after the other; what formulas say of equal states is kept."""

    copies: Copies
    last_metadata_time: int
    formulas: ReplicationFormulas

    def judge(self, subject: InspectedPartition) -> PartitionJudgement:
        """All about one partition."""
        notes = FindingNotes()
        for broker, why in sorted(subject.unread.items()):
            notes.unjudged.append(
                UnjudgedSubject(subject.name, f"the log of {broker}", why, matters=True)
            )
        states = {
            name: state_of(copy, subject.lines, subject.epochs_from)
            for name, copy in subject.copies.items()
        }
        exposed = exposures(subject, states)
        starts = epoch_starts(subject, states)
        moment = self._moment(subject, states, exposed, starts, notes)
        case = _PartitionCase(self, subject, states, exposed, starts, moment, notes)
        truths = {**case.judge_logs(), **case.judge_together()}
        truths |= case.judge_history()
        cut = truncations(subject.lines, exposed, subject.elections, starts)
        case.tell_truncations(cut)
        case.tell_elections()
        notes.discoveries += outdated(subject, starts, self.copies)
        _tell_doubled(subject, notes)
        return PartitionJudgement(
            subject, states, tuple(differences(states)), exposed, cut, starts, truths, moment, notes
        )

    def _moment(
        self,
        subject: InspectedPartition,
        states: Mapping[str, ReplicaState],
        exposed: Sequence[Exposure],
        starts: Mapping[int, int],
        notes: FindingNotes,
    ) -> PartitionMoment:
        """The moment of the copies: the newest registration, and what is owed by then."""
        registered = self.registered(subject.elections.last if subject.elections else None)
        replicas = dict(states)
        for name in registered.isr | {registered.leader} - {NOBODY}:
            replicas.setdefault(name, ABSENT)
        leader = registered.leader
        if leader in states:
            known = max(states[leader].latest_epoch, registered.leader_epoch)
            replicas[leader] = replace(states[leader], leads=True, latest_epoch=known)
        owed = self._owed(subject, states, exposed, starts, registered, notes)
        return PartitionMoment(registered, replicas, owed)

    def registered(self, registration: Registration | None) -> RegisteredPartition:
        """A registration with brokers by name."""
        if registration is None:
            return RegisteredPartition(NOBODY, 0, frozenset(), 0)
        leader = NOBODY if registration.leader < 0 else self.copies.name(registration.leader)
        isr = frozenset(self.copies.name(node) for node in registration.electable)
        return RegisteredPartition(
            leader, registration.leader_epoch, isr, registration.partition_epoch
        )

    def _owed(
        self,
        subject: InspectedPartition,
        states: Mapping[str, ReplicaState],
        exposed: Sequence[Exposure],
        starts: Mapping[int, int],
        registered: RegisteredPartition,
        notes: FindingNotes,
    ) -> tuple[EpochRun, ...]:
        """The records that checkpointed high watermarks prove to be exposed, and that are owed.

        Not those that an unclean election gave up; nor those behind the end of a copy that may
        have been made before they were exposed.
        """
        elections, epoch_runs = subject.elections, list[EpochRun]()
        for exposure in exposed:
            if not exposure.checkpointed:
                continue
            for run in held_below(states[exposure.broker], exposure.below):
                epoch_runs += _kept(run, (elections and elections.unclean) or (), starts)
        limit = min(
            (
                states[name].end
                for name in registered.isr | {registered.leader}
                if name in states and self._may_be_older(subject, name, exposed)
            ),
            default=None,
        )
        if limit is None or all(run.end <= limit for run in epoch_runs):
            return merged(epoch_runs)
        why = "a copy of the leader or of a member of the ISR may be older than their exposure"
        what = f"records from offset {limit} on"
        notes.unjudged.append(UnjudgedSubject(subject.name, what, why, matters=True))
        return merged(
            EpochRun(run.start, min(run.end, limit), run.epoch)
            for run in epoch_runs
            if run.start < limit
        )

    def _may_be_older(
        self, subject: InspectedPartition, name: str, exposed: Sequence[Exposure]
    ) -> bool:
        """Whether a broker's copy may be of a time before what others say was exposed."""
        copy, end = self.copies[name], subject.copies[name].end
        if copy.is_clean(subject.copies[name].directory):
            return False
        since = max((o.time for o in exposed if o.checkpointed and o.below > end), default=-1)
        return since > copy.copied_at - copy.window

    def unsure(self, subject: InspectedPartition, name: str, since: int) -> str:
        """Why what one broker's files say of each other may be due to their copying; '' if not.

        `since`: when what is missing had happened, in milliseconds since 1970.
        """
        copy = self.copies[name]
        if copy.is_clean(subject.copies[name].directory):
            return ""
        if 0 <= since < copy.copied_at - copy.window:
            return ""
        return (
            f"{name} was not shut down in order before its files were copied, and the copying may "
            f"have taken {copy.window / 1000:.0f} s."
        )


def _kept(
    run: EpochRun, unclean: Sequence[Registration], starts: Mapping[int, int]
) -> Iterator[EpochRun]:
    """What of a run is owed after unclean elections: what lies below where these began."""
    end = run.end
    for registration in unclean:
        if registration.leader_epoch > run.epoch:
            end = min(end, starts.get(registration.leader_epoch, end))
    if end > run.start:
        yield EpochRun(run.start, end, run.epoch)


@dataclass(frozen=True, slots=True)
class _PartitionCase:
    """One partition while it is judged."""

    judge: PartitionJudge
    subject: InspectedPartition
    states: Mapping[str, ReplicaState]
    exposed: tuple[Exposure, ...]
    starts: Mapping[int, int]
    moment: PartitionMoment
    notes: FindingNotes

    # --- the moment of the copies -------------------------------------------------------------

    def judge_logs(self) -> dict[str, bool | None]:
        """The formulas that ask nothing of the controller."""
        if bare := self.subject.epochs_from:
            why = "they are of magic 0 or 1, which carries no leader epoch"
            epochs = any(state.runs for state in self.states.values())
            self.unjudged(f"records below offset {bare}", why, matters=not epochs)
            if not epochs:
                return dict.fromkeys(_LOGS)
        truths = self.judge.formulas.judge(_LOGS, self.moment)
        for name, copy in self.subject.copies.items():
            if copy.epoch_cache is None and copy.log is not None:
                self.unjudged(
                    f"EpochCacheMatchesLog of {name}", "it has no leader-epoch-checkpoint"
                )
            if copy.high_watermark is None and copy.log is not None and not self.is_raft:
                why = "its replication-offset-checkpoint has no entry"
                self.unjudged(f"HighWatermarkWithinLog of {name}", why)
        if len(self.states) < 2:
            self.unjudged("LogMatching", f"only {len(self.states)} replica is here")
            truths["LogMatching"] = FormulaTruth(None)
        elif not self.subject.is_of_one_topic:
            self.unjudged("LogMatching", "the folders have different topic ids", matters=True)
            truths["LogMatching"] = FormulaTruth(None)
        for formula, truth in truths.items():
            self._tell(formula, truth)
        return {name: truth.holds for name, truth in truths.items()}

    def judge_together(self) -> dict[str, bool | None]:
        """The formulas that hold the logs against the controller's word."""
        if self.subject.elections is None:
            if not self.is_raft:
                why = "the metadata log that is here does not know the partition"
                self.unjudged(", ".join(_TOGETHER), why, matters=True)
            return dict.fromkeys(_TOGETHER)
        truths = self.judge.formulas.judge(_TOGETHER, self.moment)
        leader = self.moment.registered.leader
        if leader not in self.states:
            named = "it has none" if leader == NOBODY else f"the files of {leader} are not here"
            self.unjudged("CommittedNeverLost of the leader", named, matters=leader != NOBODY)
            truths["CommittedNeverLost"] = FormulaTruth(None)
        for formula, truth in truths.items():
            self._tell(formula, truth)
        return {name: truth.holds for name, truth in truths.items()}

    @property
    def is_raft(self) -> bool:
        """The metadata log itself: Raft's, no replica manager's."""
        return self.subject.key[0] == _RAFT

    def _tell(self, formula: str, truth: FormulaTruth) -> None:
        if truth.broken is not None:
            self.notes.discoveries += _TELLERS[formula](self, truth.broken)
        elif truth.undefined:
            self.unjudged(formula, f"it has no value: {truth.undefined}", matters=True)

    def unjudged(self, what: str, why: str, *, matters: bool = False) -> None:
        """Note what cannot be said."""
        self.notes.unjudged.append(UnjudgedSubject(self.subject.name, what, why, matters))

    def discovery(
        self,
        kind: str,
        title: str,
        message: str,
        *,
        broken: FalseFormula | None = None,
        offsets: tuple[int, int] | None = None,
        brokers: Sequence[str] = (),
        sources: Sequence[str] = (),
    ) -> Discovery:
        """A finding about this partition."""
        return Discovery(
            kind,
            self.subject.name,
            title,
            message,
            offsets=offsets,
            brokers=tuple(brokers),
            formula=broken.formula if broken else "",
            location=broken.location if broken else "",
            reasons=broken.reasons if broken else (),
            scale=broken.window.scale if broken else "",
            sources=tuple(sources),
            topic=self.subject.key[0],
            partition=self.subject.key[1],
        )

    def leader_of(self, epoch: int | None) -> str:
        """Who wrote the records of an epoch, in words."""
        elections = self.subject.elections
        if epoch is None:
            return "nothing"
        leader = None if elections is None else elections.leader_of(epoch)
        if leader is None or leader < 0:
            return f"epoch {epoch}"
        return f"epoch {epoch}, written under {self.judge.copies.name(leader)}"

    # --- findings of formulas -------------------------------------------------------------------

    def log_matching(self, broken: FalseFormula) -> Iterator[Discovery]:
        """Where two logs differ below a record on which they agree."""
        for first, other, part in mismatches(self.states):
            mine, theirs = part.epochs[first], part.epochs[other]
            title = (
                f"{self.subject.name}: {first} and {other} differ silently from offset {part.start}"
            )
            message = (
                f"Offsets {part.start} to {part.end - 1} hold {self.leader_of(mine)} on {first} "
                "and "
                f"{self.leader_of(theirs)} on {other}, and behind them both logs agree again: no "
                "follower would ever notice."
            )
            yield self.discovery(
                "LogMatching", title, message,
                broken=broken, offsets=(part.start, part.end), brokers=(first, other),
            )  # fmt: skip

    def epoch_cache(self, _broken: FalseFormula) -> Iterator[Discovery]:
        """Replicas whose leader-epoch-checkpoint tells another log."""
        for name, state in self.states.items():
            alone = replace(self.moment, replicas={name: state})
            truth = self.judge.formulas.judge(("EpochCacheMatchesLog",), alone)
            if truth["EpochCacheMatchesLog"].holds is not False:
                continue
            offset, words = cache_difference(state)
            copy = self.subject.copies[name]
            discovery = self.discovery(
                "EpochCacheMatchesLog",
                f"{self.subject.name}: the leader-epoch-checkpoint of {name} is not of this log",
                f"{words} Followers that ask {name} for the end of an epoch are told a wrong "
                "offset, and truncate too much or too little.",
                broken=truth["EpochCacheMatchesLog"].broken,
                offsets=(offset, offset + 1),
                brokers=(name,),
                sources=(f"{name}: {copy.path}/leader-epoch-checkpoint",),
            )
            why = self.judge.unsure(self.subject, name, self._election_time(state, offset))
            yield discovery.softened(why) if why and only_the_end_differs(state) else discovery

    def _election_time(self, state: ReplicaState, offset: int) -> int:
        """When the epoch of a record began, by the controller; -1 if it does not tell."""
        epoch = next((r.epoch for r in state.runs if r.start <= offset < r.end), None)
        elections = self.subject.elections
        began = elections.began(epoch) if elections and epoch is not None else None
        return -1 if began is None else began.time

    def epochs_fall(self, broken: FalseFormula) -> Iterator[Discovery]:
        """Records of an older leader behind those of a newer one."""
        for name, state in self.states.items():
            for before, after in zip(state.runs, state.runs[1:], strict=False):
                if after.epoch < before.epoch:
                    yield self.discovery(
                        "EpochsNonDecreasing",
                        f"{self.subject.name}: on {name} the leader epoch falls at offset "
                        f"{after.start}",
                        f"Offset {after.start - 1} is of {self.leader_of(before.epoch)}, offset "
                        f"{after.start} of {self.leader_of(after.epoch)}: no leader appends so.",
                        broken=broken, offsets=(after.start, after.end), brokers=(name,),
                    )  # fmt: skip

    def high_watermark(self, broken: FalseFormula) -> Iterator[Discovery]:
        """A log that ends below the high watermark that its broker had written down."""
        for name, state in self.states.items():
            if state.high_watermark <= state.end:
                continue
            copy = self.subject.copies[name]
            discovery = self.discovery(
                "HighWatermarkWithinLog",
                f"{self.subject.name}: the log of {name} ends at {state.end}, below its high "
                f"watermark {state.high_watermark}",
                f"Offsets {state.end} to {state.high_watermark - 1} were exposed to consumers by "
                f"the word of {name} itself, and are not in its log any more.",
                broken=broken,
                offsets=(state.end, state.high_watermark),
                brokers=(name,),
                sources=(f"{name}: replication-offset-checkpoint says {state.high_watermark}",),
            )
            earlier = copy.written_at < copy.high_watermark_at
            why = self.judge.unsure(self.subject, name, copy.written_at) if earlier else ""
            yield discovery.softened(why) if why else discovery

    def unknown_epoch(self, broken: FalseFormula) -> Iterator[Discovery]:
        """Records of an epoch that the controller has not given out."""
        known = self.moment.registered.leader_epoch
        for name, state in self.states.items():
            runs = [run for run in state.runs if run.epoch > known]
            entries = [entry for entry in state.epoch_cache if entry.epoch > known]
            if not runs and not entries and state.latest_epoch <= known:
                continue
            start, end = (runs[0].start, runs[-1].end) if runs else (state.end, state.end + 1)
            where = "records" if runs else "leader-epoch-checkpoint" if entries else "server log"
            result = self.discovery(
                "KnownEpochIsRegistered",
                f"{self.subject.name}: {name} has leader epoch {state.latest_epoch}, which the "
                "controller never gave out",
                f"The controller's last epoch is {known}; the {where} of {name} has "
                f"{state.latest_epoch}.",
                broken=broken, offsets=(start, end), brokers=(name,),
            )  # fmt: skip
            log = self.subject.copies[name].log
            newer = log is not None and log.last_time > self.judge.last_metadata_time
            why = "the copies of the metadata log end before these records were written."
            yield result.softened(why) if newer else result

    def lost(self, broken: FalseFormula) -> Iterator[Discovery]:
        """Exposed records that the leader lacks."""
        leader = self.moment.registered.leader
        for run in missing(self.states[leader], self.moment.exposed):
            state = self.states[leader]
            instead = next((r.epoch for r in state.runs if r.start <= run.start < r.end), None)
            yield self.discovery(
                "CommittedNeverLost",
                f"{self.subject.name}: committed records {run.start} to {run.end - 1} are lost",
                f"They are of {self.leader_of(run.epoch)}, and were exposed to consumers. The "
                f"leader {leader} (epoch {self.moment.registered.leader_epoch}) holds "
                f"{self.leader_of(instead)} there. {self._how(run)}",
                broken=broken,
                offsets=(run.start, run.end),
                brokers=tuple(sorted({leader, *self._holders(run)})),
                sources=self._sources(run),
            )

    def _how(self, run: EpochRun) -> str:
        """Which election lost them."""
        elections = self.subject.elections
        since = min(
            (exposure.epoch for exposure in self.exposed if exposure.below > run.start),
            default=run.epoch,
        )
        for election in elections.elections if elections else ():
            start = self.starts.get(election.leader_epoch)
            if election.leader_epoch > since and start is not None and start <= run.start:
                name = self.judge.copies.name(election.leader)
                return (
                    f"{name} was elected in epoch {election.leader_epoch}, a clean election, with "
                    "a log "
                    f"that ended at {start}."
                )
        return "No election explains it: the leader's own log has lost or changed them."

    def _holders(self, run: EpochRun) -> list[str]:
        return [
            name
            for name, state in self.states.items()
            if any(r.epoch == run.epoch and r.start <= run.start < r.end for r in state.runs)
        ]

    def _sources(self, run: EpochRun) -> tuple[str, ...]:
        return tuple(exposure.source for exposure in self.exposed if exposure.below > run.start)[:6]

    def electable_lacks(self, broken: FalseFormula) -> Iterator[Discovery]:
        """Exposed records that a member of the ISR lacks."""
        leader = self.states.get(self.moment.registered.leader)
        lost = missing(leader, self.moment.exposed) if leader else []
        for name in sorted(self.moment.registered.isr):
            if name == self.moment.registered.leader or name not in self.states:
                continue
            for run in missing(self.states[name], self.moment.exposed):
                if run in lost:
                    continue  # the leader lacks them too, and that is told
                yield self.discovery(
                    "ElectableHasExposed",
                    f"{self.subject.name}: {name} is in the ISR and lacks the exposed records "
                    f"{run.start} to {run.end - 1}",
                    f"They are of {self.leader_of(run.epoch)}. If {name} were elected, they would "
                    "be lost.",
                    broken=broken, offsets=(run.start, run.end), brokers=(name,),
                    sources=self._sources(run),
                )  # fmt: skip

    def two_exposed(self, broken: FalseFormula) -> Iterator[Discovery]:
        """Two different records that were both exposed at one offset."""
        runs = self.moment.exposed
        for number, run in enumerate(runs):
            for other in runs[number + 1 :]:
                start, end = max(run.start, other.start), min(run.end, other.end)
                if start < end and run.epoch != other.epoch:
                    yield self.discovery(
                        "OneExposedRecordPerOffset",
                        f"{self.subject.name}: consumers could read two different records at "
                        f"offset {start}",
                        f"Offsets {start} to {end - 1} were exposed as {self.leader_of(run.epoch)} "
                        f"and as {self.leader_of(other.epoch)}.",
                        broken=broken, offsets=(start, end),
                    )  # fmt: skip

    # --- the history ----------------------------------------------------------------------------

    def judge_history(self) -> dict[str, bool | None]:
        """The controller's registrations one after the other, and who said to lead when."""
        properties = self.judge.formulas.specification.properties
        names = ("LeaderInIsr", *properties, "OneLeaderPerEpoch")
        if self.subject.elections is None:
            return dict.fromkeys(names)
        truths: dict[str, bool | None] = dict.fromkeys(names, True)
        moments = [
            (registration, self._registration_moment(registration))
            for registration in self._registrations()
        ]
        for registration, moment in moments:
            truth = self.judge.formulas.judge(("LeaderInIsr",), moment)["LeaderInIsr"]
            if truth.broken is not None:
                truths["LeaderInIsr"] = False
                self._tell_registration("LeaderInIsr", registration, truth.broken)
        for (_, before), (after_one, after) in itertools.pairwise(moments):
            for formula in properties:
                truth = self.judge.formulas.step(formula, before, after)
                if truth.broken is not None:
                    truths[formula] = False
                    self._tell_registration(formula, after_one, truth.broken)
        truths["OneLeaderPerEpoch"] = self._one_leader_per_epoch()
        return truths

    def _registrations(self) -> list[Registration]:
        """The log's registrations, with those of snapshots that differ where they stand."""
        assert self.subject.elections is not None
        every = [*self.subject.elections.registrations, *self.subject.snapshots]
        return sorted(every, key=lambda registration: registration.offset)

    def _registration_moment(self, registration: Registration) -> PartitionMoment:
        registered = self.judge.registered(registration)
        names = {
            self.judge.copies.name(node)
            for node in (*registration.replicas, *registration.electable)
        }
        names |= {registered.leader} - {NOBODY}
        return PartitionMoment(registered, dict.fromkeys(sorted(names), ABSENT))

    def _tell_registration(
        self, formula: str, registration: Registration, broken: FalseFormula
    ) -> None:
        registered = self.judge.registered(registration)
        self.notes.discoveries.append(
            self.discovery(
                formula,
                f"{self.subject.name}: the controller's registration at metadata offset "
                f"{registration.offset} breaks {formula}",
                f"Leader {registered.leader}, leader epoch {registration.leader_epoch}, ISR "
                f"{', '.join(sorted(registered.isr)) or 'empty'}, partition epoch "
                f"{registration.partition_epoch}, as a {registration.source} has it.",
                broken=broken,
                sources=(f"__cluster_metadata-0, offset {registration.offset}",),
            )
        )

    def _one_leader_per_epoch(self) -> bool | None:
        """Whoever said that it leads, held against each other and against the controller."""
        claims: dict[int, dict[str, str]] = {}
        copies = self.judge.copies.copies
        for registration in self._registrations():
            if registration.leader >= 0:
                name = self.judge.copies.name(registration.leader)
                claims.setdefault(registration.leader_epoch, {})[name] = (
                    f"__cluster_metadata-0, offset {registration.offset}"
                )
        for line in self.subject.lines:
            # Whether a broker of unknown node is the one that the controller names cannot be told.
            known = line.broker in copies and copies[line.broker].node is not None
            if line.kind == "started" and line.leads and known:
                claims.setdefault(line.epoch, {}).setdefault(line.broker, line.source)
        holds = True
        for epoch, leaders in claims.items():
            replicas = {
                name: replace(ABSENT, present=True, leads=True, latest_epoch=epoch)
                for name in leaders
            }
            moment = PartitionMoment(RegisteredPartition(NOBODY, epoch, frozenset(), 0), replicas)
            truth = self.judge.formulas.judge(("OneLeaderPerEpoch",), moment)["OneLeaderPerEpoch"]
            if truth.broken is not None:
                holds = False
                self.notes.discoveries.append(
                    self.discovery(
                        "OneLeaderPerEpoch",
                        f"{self.subject.name}: {' and '.join(sorted(leaders))} both led in epoch "
                        f"{epoch}",
                        "An epoch names one history; records of both cannot be told apart.",
                        broken=truth.broken,
                        brokers=tuple(sorted(leaders)),
                        sources=tuple(leaders.values()),
                    )
                )
        return holds

    # --- what elections and truncations lost ----------------------------------------------------

    def tell_truncations(self, cut: Sequence[Truncation]) -> None:
        """Truncations that cut what consumers could read, as the specification judges them."""
        for truncation in cut:
            if truncation.cuts_exposed:
                lost = EpochRun(truncation.offset, truncation.known, max(truncation.epoch - 1, 0))
                self._tell_loss(
                    lost,
                    f"{truncation.broker} cut them when it followed "
                    f"{self._named(truncation.leader)} in epoch {truncation.epoch}",
                    truncation.unclean,
                    (f"{truncation.source}: {truncation.text}", truncation.evidence),
                    (truncation.broker,),
                )

    def _named(self, leader: int) -> str:
        return "its leader" if leader < 0 else self.judge.copies.name(leader)

    def tell_elections(self) -> None:
        """Leaders whose logs ended below a high watermark that was known before."""
        elections = self.subject.elections
        if elections is None:
            return
        for election in elections.elections:
            start = self.starts.get(election.leader_epoch)
            before = [e for e in self.exposed if e.epoch < election.leader_epoch]
            if start is None or election.leader < 0 or not before:
                continue
            most = max(before, key=lambda e: e.below)
            if most.below > start:
                name = self.judge.copies.name(election.leader)
                unclean = explained_by(elections, self.starts, start, most.epoch)
                self._tell_loss(
                    EpochRun(start, most.below, max(most.epoch, 0)),
                    f"{name} was elected in epoch {election.leader_epoch} with a log that ended at "
                    f"{start}",
                    unclean,
                    (most.source, f"__cluster_metadata-0, offset {election.offset}"),
                    (name,),
                )

    def _tell_loss(
        self,
        lost: EpochRun,
        how: str,
        unclean: Registration | None,
        sources: Sequence[str],
        brokers: Sequence[str],
    ) -> None:
        """A loss, unless it was told already; by an unclean election it is told as such."""
        for number, known in enumerate(self.notes.discoveries):
            if _same_loss(known, lost, unclean):
                more = tuple(dict.fromkeys((*known.sources, *sources)))
                self.notes.discoveries[number] = replace(known, sources=more)
                return
        broken = self._lost_in_the_spec(lost)
        if unclean is not None:
            kind, by = "lost-by-unclean-election", self.judge.copies.name(unclean.leader)
            message = (
                f"They had been exposed to consumers. {by} was not in the ISR when it was elected "
                f"in epoch {unclean.leader_epoch} (metadata offset {unclean.offset}): with "
                f"unclean.leader.election.enable the specification allows it. In this case {how}."
            )
        else:
            kind = "CommittedNeverLost"
            message = f"They had been exposed to consumers. In this case {how}."
        title = f"{self.subject.name}: committed records {lost.start} to {lost.end - 1} are lost"
        if unclean is not None:
            title += ", given up by an unclean election"
        self.notes.discoveries.append(
            self.discovery(
                kind,
                title,
                message,
                broken=broken,
                offsets=(lost.start, lost.end),
                brokers=brokers,
                sources=sources,
            )
        )

    def _lost_in_the_spec(self, lost: EpochRun) -> FalseFormula | None:
        """CommittedNeverLost where the leader's log ends below what was exposed."""
        log = (EpochRun(0, lost.start, lost.epoch),) if lost.start else ()
        leader = ReplicaState(
            0, lost.start, log, lost.start, (CacheEntry(lost.epoch, 0),) if log else (),
            lost.epoch + 1, leads=True,
        )  # fmt: skip
        registered = RegisteredPartition("leader", lost.epoch + 1, frozenset({"leader"}), 0)
        moment = PartitionMoment(registered, {"leader": leader}, (*log, lost))
        truths = self.judge.formulas.judge(("CommittedNeverLost",), moment)
        return truths["CommittedNeverLost"].broken


_TELLERS = {
    "LogMatching": _PartitionCase.log_matching,
    "EpochCacheMatchesLog": _PartitionCase.epoch_cache,
    "EpochsNonDecreasing": _PartitionCase.epochs_fall,
    "HighWatermarkWithinLog": _PartitionCase.high_watermark,
    "KnownEpochIsRegistered": _PartitionCase.unknown_epoch,
    "CommittedNeverLost": _PartitionCase.lost,
    "ElectableHasExposed": _PartitionCase.electable_lacks,
    "OneExposedRecordPerOffset": _PartitionCase.two_exposed,
}


def _same_loss(known: Discovery, lost: EpochRun, unclean: Registration | None) -> bool:
    kind = "CommittedNeverLost" if unclean is None else "lost-by-unclean-election"
    if known.kind != kind or known.offsets is None:
        return False
    return known.offsets[0] < lost.end and lost.start < known.offsets[1]


def _tell_doubled(subject: InspectedPartition, notes: FindingNotes) -> None:
    for copy in subject.doubled:
        notes.discoveries.append(
            Discovery(
                "two-logs",
                subject.name,
                f"{subject.name}: {copy.broker} has the partition in two log directories",
                f"The log in {copy.path} ends at {copy.end}; the longer one was judged. Kafka "
                "refuses to start with both.",
                brokers=(copy.broker,),
                topic=subject.key[0],
                partition=subject.key[1],
            )
        )
