package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * The commands of one SharePartition: its members, the answers of its persister, its timers and the
 * start of its log are the commands.
 */
final class SharePartitions {
  static final String PREFIX = "share_";
  private static final String PACKAGE = "kafka.server.share.";
  private static final int LEADER_EPOCH = 1;
  private static final int LOCK_DURATION_MS = 30_000;
  private static final int ACQUIRED_AT_ONCE = 1; // each record batch is acquired by itself
  private static final String NO_MEMBER = "";
  private static final String NO_MEMBER_OF_4_1 = Uuid.ZERO_UUID.toString();

  private final ObjectMapper json = new ObjectMapper();
  private final OffsetsTopic topic;
  private final Object groupConfigs = new LoadedShard.OfGroups().groupConfigs();
  private final TopicIdPartition partition =
      new TopicIdPartition(Uuid.randomUuid(), new TopicPartition("topic", 0));
  private HeldPersister persister;
  private LockTimer timer;
  private Object sharePartition;
  private int records;
  private long logStart;
  private String answer;

  SharePartitions(File folder) {
    topic = new OffsetsTopic(new File(folder, "shares"));
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    if (name.equals("share_view")) {
      return view();
    }
    answer = "none";
    switch (name) {
      case "share_reset" -> reset(command);
      case "share_acquire" -> acquire(member(command), command.get("size").asInt());
      case "share_acknowledge" -> acknowledge(command);
      case "share_end_session" ->
          begun(() -> Kafka.call(sharePartition, "releaseAcquiredRecords", member(command)));
      case "share_complete_write" -> {
        HeldPersister.Write write = persister.complete(command.get("write").asInt(), command.get("ok").asBoolean());
        answer = write.request() == null ? "none" : answerOf(write.request(), "failed");
      }
      case "share_expire_lock" -> timer.fire(lockOf(command.get("offset").asLong()));
      case "share_move_log_start" -> moveLogStart(command.get("to").asLong());
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return "null";
  }

  private static String member(JsonNode command) {
    return command.get("member").asText();
  }

  // ---- the share partition -----------------------------------------------------------------

  /** An empty state of the group, read from the coordinator. */
  private void reset(JsonNode command) {
    records = command.get("records").asInt();
    logStart = 0;
    Time clock = new Virtual.Clock();
    persister = new HeldPersister(partition);
    timer = new LockTimer(clock);
    Iterator<Integer> numbers =
        List.of(
                LEADER_EPOCH,
                command.get("max_in_flight").asInt(),
                command.get("delivery_limit").asInt(),
                LOCK_DURATION_MS)
            .iterator();
    sharePartition =
        Kafka.wire(
            Kafka.type(PACKAGE + "SharePartition"),
            type -> type == int.class ? numbers.next() : part(Kafka.raw(type), clock));
    CompletableFuture<?> initialized =
        (CompletableFuture<?>) Kafka.call(sharePartition, "maybeInitialize");
    initialized.join();
  }

  private Object part(Class<?> type, Time clock) {
    if (type == String.class) {
      return "group";
    }
    if (type == TopicIdPartition.class) {
      return partition;
    }
    if (type == Timer.class) {
      return timer;
    }
    if (type == Time.class) {
      return clock;
    }
    if (type == Consumer.class) {
      return (Consumer<Object>) key -> {};
    }
    if (type == Supplier.class) {
      return (Supplier<Boolean>) () -> false; // no dead letters
    }
    return switch (type.getSimpleName()) {
      case "Persister" -> persister.play(type);
      case "ReplicaManager" -> topic.process.replicaManager;
      case "GroupConfigManager" -> groupConfigs;
      case "ShareGroupConfigProvider" -> Kafka.make(type, groupConfigs);
      case "SharePartitionState" -> Kafka.getStatic(type, "EMPTY");
      case "SharePartitionMetrics" -> Kafka.make(type, "group", "topic", 0);
      case "SharePartitionListener" -> null; // the manager's: nobody else asks it
      default -> Kafka.play(type, (proxy, method, arguments) -> null);
    };
  }

  /** A fetch, from nextFetchOffset on: what DelayedShareFetch does once it has read the log. */
  private void acquire(String member, int size) {
    if (!(boolean) Kafka.call(sharePartition, "canAcquireRecords")) {
      throw new Broker.Refused("nothing can be acquired");
    }
    long offset = (long) Kafka.call(sharePartition, "nextFetchOffset");
    Iterator<Integer> numbers = List.of(ACQUIRED_AT_ONCE, size).iterator();
    Kafka.wireCall(
        sharePartition,
        "acquire",
        type ->
            type == int.class
                ? numbers.next()
                : type == long.class ? offset : fetched(Kafka.raw(type), member, offset));
  }

  private Object fetched(Class<?> type, String member, long offset) {
    if (type == String.class) {
      return member;
    }
    return switch (type.getSimpleName()) {
      case "ShareAcquireMode" -> Kafka.getStatic(type, "BATCH_OPTIMIZED");
      case "FetchIsolation" -> Kafka.getStatic(type, "HIGH_WATERMARK");
      default -> Kafka.wire(type, part -> read(part, offset)); // FetchPartitionData
    };
  }

  private Object read(Type type, long offset) {
    Class<?> raw = Kafka.raw(type);
    if (raw == Errors.class) {
      return Errors.NONE;
    }
    if (raw == long.class) {
      return (long) records; // high watermark; the start of the log is not asked for
    }
    if (raw == boolean.class) {
      return false;
    }
    if (raw == Optional.class) {
      return Optional.empty();
    }
    if (raw == OptionalLong.class) {
      return OptionalLong.empty();
    }
    return raw == OptionalInt.class ? OptionalInt.empty() : batches(offset);
  }

  /** The log from an offset on, each record in a batch of its own. */
  private Object batches(long offset) {
    ByteBuffer all = ByteBuffer.allocate(1 << 12);
    Object compression = Kafka.call(Kafka.callStatic(Kafka.type("Compression"), "none"), "build");
    for (long at = offset; at < records; at++) {
      Object[] record = (Object[]) java.lang.reflect.Array.newInstance(Kafka.type("SimpleRecord"), 1);
      record[0] = Kafka.make(Kafka.type("SimpleRecord"), (Object) new byte[] {'v'});
      Object batch =
          Kafka.callStatic(Kafka.type("MemoryRecords"), "withRecords", at, compression, record);
      all.put((ByteBuffer) Kafka.call(batch, "buffer"));
    }
    all.flip();
    return Kafka.callStatic(Kafka.type("MemoryRecords"), "readableRecords", all);
  }

  private void acknowledge(JsonNode command) {
    byte type =
        switch (command.get("type").asText()) {
          case "ACCEPT" -> 1;
          case "RELEASE" -> 2;
          default -> 3;
        };
    Object batch =
        Kafka.make(
            Kafka.type("org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch"),
            command.get("first").asLong(),
            command.get("last").asLong(),
            List.of(type));
    begun(() -> Kafka.call(sharePartition, "acknowledge", member(command), List.of(batch)));
  }

  /** A request whose answer may wait for the write that it has begun. */
  private void begun(Supplier<Object> request) {
    int before = persister.size();
    CompletableFuture<?> future = (CompletableFuture<?>) request.get();
    if (persister.size() > before) {
      persister.belongsTo(future);
    } else {
      answer = answerOf(future, "refused");
    }
  }

  private static String answerOf(CompletableFuture<?> future, String otherwise) {
    return !future.isDone() ? "none" : future.isCompletedExceptionally() ? otherwise : "ok";
  }

  /** A fetch from nextFetchOffset on is out of range: ShareFetchUtils.processFetchResponse. */
  private void moveLogStart(long to) {
    Kafka.call(sharePartition, "nextFetchOffset");
    Kafka.call(sharePartition, "updateCacheAndOffsets", to);
    logStart = to;
  }

  // ---- what is seen ------------------------------------------------------------------------

  private TimerTask lockOf(long offset) {
    NavigableMap<?, ?> cache = cache();
    for (Object batch : cache.values()) {
      if ((long) Kafka.get(batch, "firstOffset") <= offset && offset <= (long) Kafka.get(batch, "lastOffset")) {
        return (TimerTask) Kafka.get(stateOf(batch, offset), "acquisitionLockTimeoutTask");
      }
    }
    throw new Broker.Refused("offset " + offset + " is not cached");
  }

  private NavigableMap<?, ?> cache() {
    return (NavigableMap<?, ?>) Kafka.get(sharePartition, "cachedState");
  }

  private static Object stateOf(Object batch, long offset) {
    Map<?, ?> offsets = (Map<?, ?>) Kafka.get(batch, "offsetState");
    return offsets == null ? Kafka.get(batch, "batchState") : offsets.get(offset);
  }

  private String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      out.writeNumber((long) Kafka.get(sharePartition, "startOffset"));
      out.writeNumber((long) Kafka.get(sharePartition, "endOffset"));
      Object flag = Kafka.get(sharePartition, "findNextFetchOffset");
      out.writeBoolean(flag instanceof AtomicBoolean atomic ? atomic.get() : (boolean) flag);
      out.writeStartArray();
      for (Object batch : cache().values()) {
        for (long at = (long) Kafka.get(batch, "firstOffset"); at <= (long) Kafka.get(batch, "lastOffset"); at++) {
          record(out, at, stateOf(batch, at));
        }
      }
      out.writeEndArray();
      persister.write(out);
      out.writeNumber(logStart);
      out.writeString(answer);
      out.writeEndArray();
    }
    return text.toString();
  }

  private void record(JsonGenerator out, long offset, Object state) throws IOException {
    Object task = Kafka.get(state, "acquisitionLockTimeoutTask");
    out.writeStartArray();
    out.writeNumber(offset);
    out.writeString(Kafka.get(state, "state").toString());
    out.writeNumber((int) Kafka.get(state, "deliveryCount"));
    out.writeString(memberOf(state));
    out.writeString(owner(Kafka.get(state, "rollbackState")));
    out.writeString(task == null ? "NONE" : timer.isPending((TimerTask) task) ? "RUNNING" : "EXPIRED");
    out.writeEndArray();
  }

  /** Whose the record was before its transition: from 4.2 on a record has it, with the limit. */
  private static String owner(Object rollback) {
    if (rollback == null) {
      return NO_MEMBER;
    }
    Object state = Kafka.has(rollback, "memberId") ? rollback : Kafka.get(rollback, "state");
    return memberOf(state);
  }

  private static String memberOf(Object state) {
    String member = (String) Kafka.get(state, "memberId");
    return member.equals(NO_MEMBER_OF_4_1) ? NO_MEMBER : member;
  }
}
