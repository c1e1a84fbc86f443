package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.function.Supplier;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.timeline.SnapshotRegistry;

/** One broker: its part of the partition, Kafka's CoordinatorRuntime, and what waits for an action. */
final class RuntimeBroker {
  static final String PACKAGE = "org.apache.kafka.coordinator.common.runtime.";
  private static final int LINGER_MS = 1_000; // never over by itself: its task is fired
  private static final int NO_NUMBER = -1;
  private static final String WRITE_IN_TRANSACTION = "scheduleTransactionalWriteOperation";

  /** An election (`load`) or a resignation whose event is queued; 0: no epoch. */
  record Role(boolean load, int epoch) {}

  final LedPartition partition;
  private final int maxBatch;
  private final ShardKind shards;
  private final Virtual.Clock clock;
  private final EventQueue events = new EventQueue();
  private final LaterEvents later;
  private final GroupTimers timers;
  private final PendingLoads loads;
  private final Set<Integer> logsRead = new HashSet<>();
  private final List<Role> roles = new ArrayList<>();
  private final List<LedPartition.Record> serialized = new ArrayList<>();
  private final List<LedPartition.Record> batchContents = new ArrayList<>();
  private Object seenBatch;
  private final Object runtime;

  RuntimeBroker(LedPartition partition, LoadedLog log, int maxBatch, Virtual.Clock clock) {
    this.partition = partition;
    this.maxBatch = maxBatch;
    shards = log.kind;
    this.clock = clock;
    later = new LaterEvents(events, shards, clock);
    timers = later.timers();
    loads = new PendingLoads(log, partition, this::tenure);
    runtime = build();
    shards.prepare(runtime);
  }

  private Object build() {
    Object builder = Kafka.make(Kafka.type(PACKAGE + "CoordinatorRuntime$Builder"));
    for (java.lang.reflect.Method method : WITH) {
      Object part = part(method.getGenericParameterTypes()[0]);
      if (part != null) {
        Kafka.call(builder, method.getName(), part);
      }
    }
    return Kafka.call(builder, "build");
  }

  private static final List<java.lang.reflect.Method> WITH =
      java.util.Arrays.stream(Kafka.type(PACKAGE + "CoordinatorRuntime$Builder").getMethods())
          .filter(method -> method.getName().startsWith("with"))
          .toList();

  /** What the runtime is made of; null: what the builder has by itself. */
  private Object part(Type type) {
    Class<?> raw = Kafka.raw(type);
    if (raw == Time.class) {
      return clock;
    }
    if (raw == Timer.class) {
      return timers;
    }
    if (raw == Duration.class) {
      return Duration.ofMillis(5_000);
    }
    if (raw == int.class) {
      return LINGER_MS; // up to 4.1; later the linger is adaptive
    }
    if (raw == OptionalInt.class) {
      return OptionalInt.empty();
    }
    if (raw == Supplier.class) {
      return (Supplier<Integer>) () -> 1 << 20; // group.coordinator.cached.buffer.max.bytes
    }
    return switch (raw.getSimpleName()) {
      case "CoordinatorEventProcessor" -> Kafka.play(raw, events);
      case "PartitionWriter" -> Kafka.play(raw, partition);
      case "CoordinatorLoader" -> Kafka.play(raw, loads);
      case "CoordinatorShardBuilderSupplier" -> Kafka.play(raw, (proxy, method, arguments) -> shards.builder());
      case "Serializer" -> Kafka.play(raw, (proxy, method, arguments) -> serialize(method.getName(), arguments[0]));
      case "Compression" -> COMPRESSION;
      case "CoordinatorMetrics" -> METRICS;
      case "CoordinatorRuntimeMetrics" -> Kafka.play(raw, (proxy, method, arguments) -> null);
      case "ExecutorService" -> Kafka.play(ExecutorService.class, (proxy, method, arguments) -> submit(method.getName(), arguments));
      default -> null;
    };
  }

  private static final Object COMPRESSION =
      Kafka.call(Kafka.callStatic(Kafka.type("Compression"), "gzip"), "build");
  private static final Object METRICS =
      Kafka.make(Kafka.type("org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics"));

  private Object submit(String method, Object[] arguments) {
    if (method.equals("submit")) {
      later.submit(context(), (Runnable) arguments[0]);
    }
    return null;
  }

  private Object serialize(String method, Object record) {
    if (method.equals("serializeKey")) {
      serialized.add(new LedPartition.Record(record, clock.milliseconds(), 0, false));
      return shards.key(record);
    }
    return shards.value(record);
  }

  // ---- steps -------------------------------------------------------------------------------

  /** Queues a write, of a producer's transaction or of none (0), and runs its event. */
  CompletableFuture<?> write(long producer, JsonNode kind, int number, String result) {
    partition.expect(result);
    Object operation =
        Kafka.play(
            Kafka.type(PACKAGE + "CoordinatorRuntime$CoordinatorWriteOperation"),
            (proxy, method, arguments) -> shards.write(arguments[0], kind, number, maxBatch));
    return run(producer == 0 ? "scheduleWriteOperation" : WRITE_IN_TRANSACTION, number, producer, operation);
  }

  /** Queues the end of a producer's transaction, and runs its event. */
  CompletableFuture<?> complete(long producer, String end, int number, String result) {
    partition.expect(result);
    return run("scheduleTransactionCompletion", number, producer, TransactionResult.valueOf(end));
  }

  /** Schedules an event whose name is its number, and runs it. Epochs are all 0. */
  private CompletableFuture<?> run(String schedule, int number, long producer, Object what) {
    // The producer's epoch comes first, then a version: of the API, or of the transaction.
    Iterator<Short> shorts = List.of((short) 0, LedPartition.TRANSACTION_VERSION).iterator();
    Object future =
        Kafka.wireCall(
            runtime,
            schedule,
            type -> {
              Class<?> raw = Kafka.raw(type);
              if (raw == String.class) {
                return String.valueOf(number);
              }
              if (raw == Duration.class) {
                return Duration.ofMillis(5_000);
              }
              if (raw == long.class) {
                return producer;
              }
              if (raw == int.class || raw == Integer.class) {
                return 0;
              }
              if (raw == short.class || raw == Short.class) {
                return shorts.next();
              }
              return raw.isInstance(what) ? what : OffsetsTopic.PARTITION;
            });
    events.run(String.valueOf(number));
    return (CompletableFuture<?>) future;
  }

  /** The linger timer, or the adaptive event that closes the batch. */
  void flush(String result) {
    partition.expect(result);
    for (TimerTask task : timers.pending()) {
      if (!isTimeOut(task) && !LaterEvents.isOfShard(task)) {
        timers.fire(task);
      }
    }
    events.runAll("FlushBatch");
  }

  private static boolean isTimeOut(TimerTask task) {
    return task.getClass().getSimpleName().equals("OperationTimeout");
  }

  /** Whether the write was made here and its time is over now. */
  boolean timeOut(int number) {
    for (TimerTask task : timers.pending()) {
      if (isTimeOut(task) && later.number(Kafka.get(task, "event")) == number) {
        timers.fire(task);
        events.run("OperationTimeout");
        return true;
      }
    }
    return false;
  }

  /** The time of a timer is over: its event is queued. */
  void fire(String name) {
    later.fire(context(), name);
  }

  /** Runs the event of a timer, which is the write of that number. */
  CompletableFuture<?> runTimeout(String name, int number, String result) {
    partition.expect(result);
    return later.runTimeout(context(), name, number);
  }

  void runLateTimeout(String name) {
    later.runLateTimeout(context(), name);
  }

  /** The pool runs what was submitted. */
  void runTasks() {
    later.runTasks();
  }

  /** Runs the event with the result of the task, which is the write of that number. */
  CompletableFuture<?> completeTask(int number, String result) {
    partition.expect(result);
    return later.completeTask(context(), number);
  }

  void completeLateTask() {
    later.completeLateTask(context());
  }

  void applyWatermark() {
    events.run("HighWatermarkUpdate");
  }

  void scheduleLoad(int epoch) {
    roles.add(new Role(true, epoch));
    Kafka.call(runtime, "scheduleLoadOperation", OffsetsTopic.PARTITION, epoch);
  }

  void scheduleUnload(OptionalInt epoch) {
    roles.add(new Role(false, epoch.orElse(0)));
    Kafka.call(runtime, "scheduleUnloadOperation", OffsetsTopic.PARTITION, epoch);
  }

  void runRole() {
    if (roles.isEmpty()) {
      throw new Broker.Refused("there is no election to handle");
    }
    events.run(roles.remove(0).load ? "Load" : "UnloadCoordinator");
  }

  /** The loader reads the log to its end; its event stays queued. */
  void readLog(int epoch) {
    loads.end(epoch);
    logsRead.add(epoch);
  }

  void completeLoad(int epoch) {
    if (!logsRead.remove(epoch)) {
      loads.end(epoch);
    }
    events.run("CompleteLoad");
  }

  // ---- what is seen ------------------------------------------------------------------------

  private Object context() {
    return ((Map<?, ?>) Kafka.get(runtime, "coordinators")).get(OffsetsTopic.PARTITION);
  }

  private int tenure() {
    Object context = context();
    return context == null ? 0 : Math.max((int) Kafka.get(context, "epoch"), 0);
  }

  /** [log, high watermark, roles, state, tenure, loads, shard, listener, timers, executor]. */
  void view(JsonGenerator out) throws IOException {
    Object context = context();
    String state = context == null ? "INITIAL" : Kafka.get(context, "state").toString();
    out.writeStartArray();
    log(out);
    out.writeNumber(partition.highWatermark());
    out.writeStartArray();
    for (Role role : roles) {
      out.writeStartArray();
      out.writeBoolean(role.load);
      out.writeNumber(role.epoch);
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeString(state.equals("INITIAL") ? "NONE" : state);
    out.writeNumber(tenure());
    numbers(out, loads.epochs());
    if (state.equals("ACTIVE")) {
      shard(out, context);
    } else {
      out.writeNull();
    }
    listener(out, context);
    later.view(out, context);
    out.writeEndArray();
  }

  private void log(JsonGenerator out) throws IOException {
    long offset = 0;
    out.writeStartArray();
    for (LedPartition.Batch batch : partition.batches()) {
      int left = batch.contents().size();
      for (LedPartition.Record record : batch.contents()) {
        out.writeStartArray();
        record(out, record, offset++);
        out.writeNumber(batch.epoch());
        out.writeBoolean(--left == 0);
        out.writeEndArray();
      }
    }
    out.writeEndArray();
  }

  /** The record, write, producer, control, offset: a record's timestamp is its write's number. */
  private void record(JsonGenerator out, LedPartition.Record record, long offset) throws IOException {
    shards.entry(out, record.entry());
    out.writeNumber(record.time() - Virtual.Clock.START);
    out.writeNumber(record.producer());
    out.writeBoolean(record.control());
    out.writeNumber(offset);
  }

  private static void numbers(JsonGenerator out, Collection<? extends Number> numbers) throws IOException {
    out.writeStartArray();
    for (Number number : numbers) {
      out.writeNumber(number.longValue());
    }
    out.writeEndArray();
  }

  /** [memory, snapshots, written, committed, batch, joined, deferred]. */
  private void shard(JsonGenerator out, Object context) throws IOException {
    Object coordinator = Kafka.get(context, "coordinator");
    Object store = Kafka.call(coordinator, "coordinator");
    SnapshotRegistry registry = (SnapshotRegistry) Kafka.get(coordinator, "snapshotRegistry");
    out.writeStartArray();
    shards.memory(out, store, SnapshotRegistry.LATEST_EPOCH);
    out.writeStartArray();
    for (long offset : registry.epochsList()) {
      out.writeStartArray();
      out.writeNumber(offset);
      shards.memory(out, store, offset);
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeNumber((long) Kafka.call(coordinator, "lastWrittenOffset"));
    out.writeNumber((long) Kafka.call(coordinator, "lastCommittedOffset"));
    batch(out, Kafka.get(context, "currentBatch"));
    Map<?, ?> pending = (Map<?, ?>) Kafka.get(Kafka.get(context, "deferredEventQueue"), "pending");
    out.writeStartArray();
    for (Map.Entry<?, ?> waiting : pending.entrySet()) {
      out.writeStartArray();
      out.writeNumber((long) waiting.getKey());
      numbers(out, writes(waiting.getValue()));
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeEndArray();
  }

  /** The open batch's records, and who waits in it. */
  private void batch(JsonGenerator out, Object batch) throws IOException {
    long offset = batch == null ? 0 : (long) Kafka.get(batch, "baseOffset");
    out.writeStartArray();
    for (LedPartition.Record record : contents(batch)) {
      out.writeStartArray();
      record(out, record, offset++);
      out.writeEndArray();
    }
    out.writeEndArray();
    numbers(out, batch == null ? List.of() : writes(Kafka.get(batch, "deferredEvents")));
  }

  /**
   * What is in the open batch.
   *
   * <p>How many records there are is the builder's number. Which they are cannot be read from a
   * codec's open stream: those that came since the last look are those that were serialized last.
   */
  private List<LedPartition.Record> contents(Object batch) {
    if (batch != seenBatch) {
      seenBatch = batch;
      batchContents.clear();
    }
    int count = batch == null ? 0 : Kafka.integer(Kafka.call(Kafka.get(batch, "builder"), "numRecords"));
    int came = count - batchContents.size();
    batchContents.addAll(serialized.subList(serialized.size() - came, serialized.size()));
    return batchContents;
  }

  /** The numbers of the writes among events, or collections of such (DeferredEventCollection). */
  private List<Integer> writes(Object event) {
    List<Integer> numbers = new ArrayList<>();
    if (event instanceof Collection<?> several) {
      several.forEach(one -> numbers.addAll(writes(one)));
    } else if (Kafka.has(event, "events")) {
      numbers.addAll(writes(Kafka.get(event, "events")));
    } else {
      numbers.add(later.number(event));
    }
    return numbers;
  }

  private void listener(JsonGenerator out, Object context) throws IOException {
    Object listener = context == null ? null : Kafka.get(context, "highWatermarklistener");
    boolean registered = listener != null && partition.listener(listener);
    out.writeStartArray();
    out.writeString(!registered ? "NONE" : partition.isRetired() ? "RETIRED" : "LIVE");
    out.writeNumber(registered ? (long) Kafka.call(listener, "lastHighWatermark") : NO_NUMBER);
    out.writeEndArray();
  }
}
