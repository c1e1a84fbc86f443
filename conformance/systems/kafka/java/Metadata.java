package kconform;

import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.common.MetadataVersion;

/** What one broker has heard of the cluster: a MetadataImage, and the records that change it. */
final class Metadata {
  static final String TOPIC = "topic";
  static final Uuid TOPIC_ID = new Uuid(1, 1);
  static final String LISTENER = "REPLICATION";
  static final int PORT = 9092;
  static final int NO_LEADER = -1;

  private final Object cache;
  private MetadataImage image;

  /** A broker's view in which all brokers are registered, and fenced. */
  Metadata(List<Integer> brokers, MetadataVersion version, Object cache) {
    this.cache = cache;
    boolean ofZooKeeper = version.featureLevel() < 1;
    MetadataDelta delta =
        new MetadataDelta.Builder()
            .setImage(ofZooKeeper ? withoutRecord(version) : MetadataImage.EMPTY)
            .build();
    if (!ofZooKeeper) {
      delta.replay(
          new FeatureLevelRecord()
              .setName(MetadataVersion.FEATURE_NAME)
              .setFeatureLevel(version.featureLevel()));
    }
    for (int broker : brokers) {
      delta.replay(registration(broker, 0, true));
    }
    publish(delta);
  }

  /**
   * An image at a version older than KRaft, which no record can tell.
   *
   * <p>ReplicaManager and the fetchers ask the metadata cache for it; a cluster of ZooKeeper's has
   * it from inter.broker.protocol.version.
   */
  private static MetadataImage withoutRecord(MetadataVersion version) {
    Object features = Kafka.with(MetadataImage.EMPTY.features(), "metadataVersion", version);
    return (MetadataImage) Kafka.with(MetadataImage.EMPTY, "features", features);
  }

  /** A topic of one partition, or another leader of it; NO_LEADER: it has none. */
  MetadataDelta led(String topic, int id, int leader) {
    int broker = Math.max(leader, 1);
    return partition(
        topic,
        new PartitionRecord()
            .setTopicId(new Uuid(4, id))
            .setPartitionId(0)
            .setReplicas(List.of(broker))
            .setIsr(List.of(broker))
            .setLeader(leader)
            .setLeaderEpoch(0)
            .setPartitionEpoch(0));
  }

  /** The broker's view. */
  MetadataImage image() {
    return image;
  }

  /** How one partition's registration reaches a broker: what applyDelta takes. */
  MetadataDelta partition(PartitionRecord record) {
    return partition(TOPIC, record);
  }

  /** The same of a partition of another topic, with the id that the record has. */
  MetadataDelta partition(String topic, PartitionRecord record) {
    MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
    if (image.topics().getTopic(topic) == null) {
      delta.replay(new TopicRecord().setName(topic).setTopicId(record.topicId()));
    }
    delta.replay(record);
    return delta;
  }

  /** The image after the delta; what the broker's metadata cache shows from now on. */
  MetadataImage publish(MetadataDelta delta) {
    image = delta.apply(MetadataProvenance.EMPTY);
    Kafka.call(cache, "setImage", image);
    return image;
  }

  /**
   * Lets the broker see another one as unfenced while the code runs.
   *
   * <p>In a broker a follower may join the ISR within the very fetch that makes it eligible, in
   * the specification that is a step of its own: until it is told to, a leader takes all others
   * for fenced (KIP-841).
   */
  void whileUnfenced(int broker, long epoch, Runnable code) {
    MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
    delta.replay(registration(broker, epoch, false));
    Kafka.call(cache, "setImage", delta.apply(MetadataProvenance.EMPTY));
    try {
      code.run();
    } finally {
      Kafka.call(cache, "setImage", image);
    }
  }

  static RegisterBrokerRecord registration(int broker, long epoch, boolean fenced) {
    RegisterBrokerRecord record =
        new RegisterBrokerRecord()
            .setBrokerId(broker)
            .setBrokerEpoch(epoch)
            .setIncarnationId(new Uuid(2, broker))
            .setLogDirs(List.of(new Uuid(3, broker)))
            .setFenced(fenced);
    record
        .endPoints()
        .add(
            new RegisterBrokerRecord.BrokerEndpoint()
                .setName(LISTENER)
                .setHost("127.0.0.1")
                .setPort(PORT + broker));
    return record;
  }
}
