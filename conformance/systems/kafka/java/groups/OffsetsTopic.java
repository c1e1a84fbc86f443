package kconform;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.server.common.MetadataVersion;

/** The one partition of __consumer_offsets, in a ReplicaManager that has nothing else. */
final class OffsetsTopic {
  static final TopicPartition PARTITION = new TopicPartition(Topic.GROUP_METADATA_TOPIC_NAME, 0);

  private static final Uuid TOPIC_ID = new Uuid(1, 2);
  private static final short GROUP_KEY = 2; // GroupMetadataKey; 0 and 1 are offsets
  private static final int EVERYTHING = 1 << 20;

  final BrokerProcess process;
  private final Object log;
  private GroupMetadataValue last;
  private long read;
  private boolean refuses;

  /** The second replica is never in the ISR: it is there to be missed (min.insync.replicas). */
  OffsetsTopic(File folder) {
    BrokerProcess.Host host = new BrokerProcess.Host(1, folder);
    process =
        new BrokerProcess(
            host,
            0,
            List.of(1, 2),
            MetadataVersion.latestProduction(),
            proposal -> new CompletableFuture<>());
    MetadataDelta delta = process.metadata.partition(PARTITION.topic(), leader());
    MetadataImage image = process.metadata.publish(delta);
    Kafka.call(process.replicaManager, "applyDelta", delta.topicsDelta(), image);
    log = Kafka.orNull(Kafka.call(process.replicaManager, "getLog", PARTITION));
  }

  private static PartitionRecord leader() {
    return new PartitionRecord()
        .setTopicId(TOPIC_ID)
        .setPartitionId(PARTITION.partition())
        .setReplicas(List.of(1, 2))
        .setIsr(List.of(1))
        .setLeader(1)
        .setLeaderEpoch(0)
        .setPartitionEpoch(0);
  }

  Object log() {
    return log;
  }

  /** An empty log. */
  void reset() {
    Kafka.call(log, "truncateTo", 0L);
    read = 0;
    last = null;
  }

  /** While the code runs, nothing can be appended for want of replicas. */
  void whileRefusing(Runnable code) {
    refuses = true;
    requireInSync(2);
    try {
      code.run();
    } finally {
      requireInSync(1);
      refuses = false;
    }
  }

  boolean refuses() {
    return refuses;
  }

  private void requireInSync(int replicas) {
    Object config = Kafka.call(log, "config");
    Map<Object, Object> values = new HashMap<>((Map<?, ?>) Kafka.call(config, "originals"));
    values.put("min.insync.replicas", String.valueOf(replicas));
    Kafka.call(log, "updateConfig", Kafka.make(config.getClass(), values));
  }

  /** The last GroupMetadataValue in the log; null if there is none, or a tombstone. */
  GroupMetadataValue lastGroup() {
    long end = Kafka.number(Kafka.call(log, "logEndOffset"));
    if (read < end) {
      Object isolation = Kafka.getStatic(Kafka.type("FetchIsolation"), "LOG_END");
      Object fetched = Kafka.call(log, "read", read, EVERYTHING, isolation, true);
      Object records = Kafka.get(fetched, "records");
      for (Object one : Kafka.each(Kafka.call(records, "records"))) {
        note(one);
      }
      read = end;
    }
    return last;
  }

  private void note(Object stored) {
    ByteBuffer key = (ByteBuffer) Kafka.call(stored, "key");
    if (key.getShort() != GROUP_KEY) {
      return;
    }
    ByteBuffer value = (ByteBuffer) Kafka.call(stored, "value");
    last = value == null ? null : new GroupMetadataValue(new ByteBufferAccessor(value), value.getShort());
  }
}
