import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.AbstractMap;
import java.util.Map;
import java.util.Optional;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import kafka.cluster.Partition;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import org.apache.kafka.clients.consumer.internals.ConsumerMembershipManager;
import org.apache.kafka.clients.consumer.internals.MemberState;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.metadata.PartitionRegistration;
import scala.Option;

/**
 * Plants faults, and remedies, into the jars of a build, in place: one class each, and none of them
 * is active unless PLANTED_FAULT names it.
 */
public final class Plant {
    private static final String EPOCHS =
        "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache";
    private static final String LOG = "org.apache.kafka.storage.internals.log.UnifiedLog";
    private static final String SEGMENT = "org.apache.kafka.storage.internals.log.LogSegment";
    private static final String LOADER = "org.apache.kafka.storage.internals.log.LogLoader";
    private static final String MARK =
        "org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler";
    private static final String GROUPS = "org.apache.kafka.coordinator.group.GroupMetadataManager";
    private static final String GROUP = "org.apache.kafka.coordinator.group.classic.ClassicGroup";

    private static final String CONSUMER_GROUP =
        "org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup";

    private static final String PARTITION = "kafka.cluster.Partition";
    private static final String FETCHER = "kafka.server.AbstractFetcherThread";
    private static final String CONSUMER = "org.apache.kafka.clients.consumer.internals.";
    private static final String HEARTBEATS = CONSUMER + "ConsumerHeartbeatRequestManager$HeartbeatState";

    private static final String SUBSCRIPTIONS = CONSUMER + "SubscriptionState";
    private static final String VALIDATOR = CONSUMER + "PositionsValidator";
    private static final String COORDINATOR = CONSUMER + "ConsumerCoordinator";

    /** Where an advice goes: the class and the method. */
    private record Place(String type, String method, Class<?> advice) { }

    private static final Place[] PLACES = {
        new Place(EPOCHS, "endOffsetFor", EpochAskedFor.class),
        new Place(EPOCHS, "truncateFromEndAsyncFlush", EpochsKept.class),
        new Place(LOG, "truncateTo", TruncatesOneLate.class),
        new Place(LOG, "maybeUpdateHighWatermark", HighWatermarkNotTaken.class),
        new Place(SEGMENT, "flush", FlushesNothing.class),
        new Place(LOADER, "removeAndDeleteSegmentsAsync", KeptBehindTorn.class),
        new Place(MARK, "delete", MarkSurvivesLoad.class),
        new Place(GROUPS, "validateClassicGroupHeartbeat", OldHeartbeat.class),
        new Place(GROUPS, "validateSyncGroup", OldSync.class),
        new Place(GROUP, "validateOffsetCommit", OldCommit.class),
        new Place(GROUP, "hasAllMembersJoined", JoinedEarly.class),
        new Place(PARTITION, "makeLeader", ForgetsPositions.class),
        new Place(PARTITION, "isReplicaIsrEligible", AnyReplicaJoins.class),
        new Place(FETCHER, "markPartitionsForTruncation", MoveNotMarked.class),
        new Place(CONSUMER_GROUP, "removePartitionEpochs", OwnerStays.class),
        new Place(HEARTBEATS, "buildRequestData", NamesAfterReconciling.class),
        new Place(SUBSCRIPTIONS, "markPendingRevocation", HandsOutBehindCommit.class),
        new Place(VALIDATOR, "validatePositionsOnMetadataChange", NeverValidates.class),
        new Place(COORDINATOR, "maybeUpdateSubscriptionMetadata", IgnoresMetadata.class),
    };

    public static void main(String[] args) throws IOException {
        for (String jar : args) {
            plant(Path.of(jar));
        }
    }

    private static void plant(Path jar) throws IOException {
        Path planted = Files.createTempFile(jar.getParent(), "planted", ".tmp");
        try (JarFile from = new JarFile(jar.toFile());
             JarOutputStream to = new JarOutputStream(Files.newOutputStream(planted))) {
            for (JarEntry entry : (Iterable<JarEntry>) from.stream()::iterator) {
                to.putNextEntry(new JarEntry(entry.getName()));
                String type = entry.getName().replace('/', '.').replaceAll("\\.class$", "");
                to.write(changed(type, from.getInputStream(entry).readAllBytes()));
                to.closeEntry();
            }
        }
        Files.move(planted, jar, StandardCopyOption.REPLACE_EXISTING);
    }

    private static byte[] changed(String type, byte[] code) {
        byte[] now = code;
        for (Place place : PLACES) {
            if (place.type().equals(type)) {
                now = with(place, now);
            }
        }
        return now;
    }

    private static byte[] with(Place place, byte[] code) {
        ClassFileLocator found = new ClassFileLocator.Compound(
            ClassFileLocator.Simple.of(place.type(), code),
            ClassFileLocator.ForClassLoader.of(Plant.class.getClassLoader()));
        return new ByteBuddy()
            .redefine(TypePool.Default.of(found).describe(place.type()).resolve(), found)
            .visit(Advice.to(place.advice()).on(ElementMatchers.named(place.method())))
            .make()
            .getBytes();
    }

    /**
     * Two remedies of the re-elected leader: a leader forgets its followers' positions in every new
     * leader epoch, or if the new epoch does not follow the old one directly.
     */
    static final class ForgetsPositions {
        @Advice.OnMethodEnter
        static void enter(
            @Advice.This Partition partition,
            @Advice.Argument(0) PartitionRegistration registration
        ) {
            String mend = System.getenv("PLANTED_FAULT");
            int skipped = registration.leaderEpoch - partition.getLeaderEpoch() - 1;
            if ("forgets-always".equals(mend) && skipped >= 0
                || "forgets-after-skipped-epochs".equals(mend) && skipped > 0) {
                partition.leaderReplicaIdOpt_$eq(Option.empty()); // makeLeader takes it for new
            }
        }
    }

    /**
     * A remedy of names-while-reconciling: a heartbeat names no partitions amid a reconciliation. The one after
     * it does, since each new assignment has a local epoch of its own.
     */
    static final class NamesAfterReconciling {
        @Advice.OnMethodExit
        static void exit(
            @Advice.FieldValue("membershipManager") ConsumerMembershipManager membership,
            @Advice.Return ConsumerGroupHeartbeatRequestData request
        ) {
            if ("names-after-reconciling".equals(System.getenv("PLANTED_FAULT"))
                && membership.state() == MemberState.RECONCILING) {
                request.setTopicPartitions(null);
            }
        }
    }

    /** A replica joins the ISR that is fenced, stops, or was another process when it fetched (KIP-841, KIP-903). */
    static final class AnyReplicaJoins {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) boolean eligible) {
            if ("any-replica-joins".equals(System.getenv("PLANTED_FAULT"))) {
                eligible = true;
            }
        }
    }

    /** The future log does not hear of a truncation of the current one. */
    static final class MoveNotMarked {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return "move-not-marked".equals(System.getenv("PLANTED_FAULT"));
        }
    }

    /** A member that leaves goes on owning its partitions. */
    static final class OwnerStays {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return "owner-stays".equals(System.getenv("PLANTED_FAULT"));
        }
    }

    /** The epoch asked for, where the largest one that is not above it is to be answered. */
    static final class EpochAskedFor {
        @Advice.OnMethodExit
        static void exit(
            @Advice.Argument(0) int asked,
            @Advice.Return(readOnly = false) Map.Entry<Integer, Long> answer
        ) {
            if ("epoch-asked-for".equals(System.getenv("PLANTED_FAULT")) && answer.getKey() >= 0) {
                answer = new AbstractMap.SimpleImmutableEntry<>(asked, answer.getValue());
            }
        }
    }

    /** Epochs stay when their records are truncated. */
    static final class EpochsKept {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return "epochs-kept".equals(System.getenv("PLANTED_FAULT"));
        }
    }

    /** One record too many stays. */
    static final class TruncatesOneLate {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) long offset) {
            if ("truncates-one-late".equals(System.getenv("PLANTED_FAULT"))) {
                offset = offset + 1;
            }
        }
    }

    /** A follower does not take its leader's high watermark. */
    static final class HighWatermarkNotTaken {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) long offset) {
            if ("high-watermark-not-taken".equals(System.getenv("PLANTED_FAULT"))) {
                offset = 0;
            }
        }
    }

    /** A segment that counts as flushed is not. */
    static final class FlushesNothing {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return "flushes-nothing".equals(System.getenv("PLANTED_FAULT"));
        }
    }

    /** A load keeps the segments behind a torn one. */
    static final class KeptBehindTorn {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return "kept-behind-torn".equals(System.getenv("PLANTED_FAULT"));
        }
    }

    /** The mark of a stop in order survives the load (KAFKA-10471). */
    static final class MarkSurvivesLoad {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return "mark-survives-load".equals(System.getenv("PLANTED_FAULT"));
        }
    }

    /** A heartbeat of an older generation is accepted. */
    static final class OldHeartbeat {
        @Advice.OnMethodEnter
        static void enter(
            @Advice.Argument(0) ClassicGroup group,
            @Advice.Argument(value = 3, readOnly = false) int generation
        ) {
            if ("old-heartbeat".equals(System.getenv("PLANTED_FAULT"))) {
                generation = group.generationId();
            }
        }
    }

    /** A SyncGroup of an older generation is accepted. */
    static final class OldSync {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) Optional<Errors> answer) {
            if ("old-sync".equals(System.getenv("PLANTED_FAULT"))
                && answer.equals(Optional.of(Errors.ILLEGAL_GENERATION))) {
                answer = Optional.empty();
            }
        }
    }

    /** A commit of an older generation is accepted. */
    static final class OldCommit {
        @Advice.OnMethodEnter
        static void enter(
            @Advice.This ClassicGroup group,
            @Advice.Argument(value = 2, readOnly = false) int generation
        ) {
            if ("old-commit".equals(System.getenv("PLANTED_FAULT")) && generation >= 0) {
                generation = group.generationId();
            }
        }
    }

    /** A rebalance ends before all members have joined. */
    static final class JoinedEarly {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) boolean answer) {
            if ("joined-early".equals(System.getenv("PLANTED_FAULT"))) {
                answer = true;
            }
        }
    }

    /** Records are handed out behind the last commit before a revocation (KAFKA-14024). */
    static final class HandsOutBehindCommit {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return "hands-out-behind-commit".equals(System.getenv("PLANTED_FAULT"));
        }
    }

    /** A leader that is new is not asked whether it has the position (KIP-320). */
    static final class NeverValidates {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return "never-validates".equals(System.getenv("PLANTED_FAULT"));
        }
    }

    /** A member does not look at what metadata has of its topics. */
    static final class IgnoresMetadata {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return "ignores-metadata".equals(System.getenv("PLANTED_FAULT"));
        }
    }
}
