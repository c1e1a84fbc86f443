package kconform;

import java.lang.reflect.Type;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import scala.Function2;
import scala.Option;
import scala.runtime.BoxedUnit;

/** What the controller decides, as Kafka's BrokerMetadataPublisher tells a broker's coordinator. */
final class CoordinatorElections {
  private static final Uuid TOPIC_ID = new Uuid(1, 3);

  private final Map<Integer, Object> publishers = new HashMap<>();
  private final Object config;
  private MetadataImage image;

  CoordinatorElections(Object config) {
    this.config = config;
    reset();
  }

  /** There is no topic. */
  void reset() {
    image = MetadataImage.EMPTY;
  }

  /** The leader in an epoch, and what two brokers at most hear of it. */
  void elect(int leader, int epoch, int brokers, Map<Integer, RuntimeBroker> whoHear) {
    List<Integer> replicas = IntStream.rangeClosed(1, brokers).boxed().toList();
    MetadataDelta delta = delta();
    if (image.topics().getTopic(OffsetsTopic.PARTITION.topic()) == null) {
      delta.replay(new TopicRecord().setName(OffsetsTopic.PARTITION.topic()).setTopicId(TOPIC_ID));
    }
    delta.replay(
        new PartitionRecord()
            .setTopicId(TOPIC_ID)
            .setPartitionId(OffsetsTopic.PARTITION.partition())
            .setReplicas(replicas)
            .setIsr(replicas)
            .setLeader(leader)
            .setLeaderEpoch(epoch)
            .setPartitionEpoch(epoch));
    publish(delta, whoHear);
  }

  void delete(Map<Integer, RuntimeBroker> whoHear) {
    MetadataDelta delta = delta();
    delta.replay(new RemoveTopicRecord().setTopicId(TOPIC_ID));
    publish(delta, whoHear);
  }

  private MetadataDelta delta() {
    return new MetadataDelta.Builder().setImage(image).build();
  }

  private void publish(MetadataDelta delta, Map<Integer, RuntimeBroker> whoHear) {
    image = delta.apply(MetadataProvenance.EMPTY);
    whoHear.forEach((id, broker) -> publish(delta, id, broker));
  }

  private void publish(MetadataDelta delta, int id, RuntimeBroker broker) {
    Function2<Object, Object, BoxedUnit> election =
        (partition, epoch) -> {
          broker.scheduleLoad((int) epoch);
          return BoxedUnit.UNIT;
        };
    Function2<Object, Option<Object>, BoxedUnit> resignation =
        (partition, epoch) -> {
          broker.scheduleUnload(epoch.isDefined() ? OptionalInt.of((int) epoch.get()) : OptionalInt.empty());
          return BoxedUnit.UNIT;
        };
    Object publisher = publishers.computeIfAbsent(id, this::publisher);
    Kafka.call(
        publisher, "updateCoordinator", image, delta, OffsetsTopic.PARTITION.topic(), election, resignation);
  }

  private Object publisher(int id) {
    Object publisher =
        Kafka.wire(Kafka.type("kafka.server.metadata.BrokerMetadataPublisher"), this::part);
    Kafka.set(publisher, "brokerId", id);
    return publisher;
  }

  /** Of all that a publisher tells, a coordinator is told of its partitions only. */
  private Object part(Type type) {
    Class<?> raw = Kafka.raw(type);
    if (raw.isInstance(config)) {
      return config;
    }
    return raw == Option.class ? Option.empty() : null;
  }
}
