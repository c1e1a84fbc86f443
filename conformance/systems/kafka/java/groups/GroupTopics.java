package kconform;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;

/** The topics that groups read, as a coordinator's metadata image has them. */
final class GroupTopics {
  private static final int ELSEWHERE = 2;
  private static final String RUNTIME = "org.apache.kafka.coordinator.common.runtime.";

  /** Its partitions are `first`, `first` + 1, ... for the harness; so many of them at first. */
  record Topic(String name, Uuid id, int first, int size) {}

  private final List<Topic> topics;
  private MetadataImage image;
  private long version;

  GroupTopics(List<Topic> topics, MetadataImage image) {
    this.topics = topics;
    this.image = image;
  }

  /** Those of a command: [name, number of the id, first partition, size]; or the topic of all others. */
  static List<Topic> of(JsonNode command) {
    if (!command.has("topics")) {
      return List.of(new Topic(Metadata.TOPIC, Metadata.TOPIC_ID, 0, command.path("partitions").asInt()));
    }
    List<Topic> topics = new ArrayList<>();
    command.get("topics").forEach(
        each -> {
          Uuid id = new Uuid(Metadata.TOPIC_ID.getMostSignificantBits(), each.get(1).asLong());
          topics.add(new Topic(each.get(0).asText(), id, each.get(2).asInt(), each.get(3).asInt()));
        });
    return List.copyOf(topics);
  }

  MetadataImage image() {
    return image;
  }

  /** The image, its topics or the delta; 4.2 takes them in a coordinator's own view of them. */
  Object as(Class<?> type, MetadataDelta delta) {
    if (type.isInstance(image.topics())) {
      return image.topics();
    }
    Object plain = type.getSimpleName().endsWith("MetadataImage") ? image : delta;
    return type.isInstance(plain) ? plain : Kafka.make(Kafka.type(RUNTIME + "KRaft" + type.getSimpleName()), plain);
  }

  /** From all that there is to the sizes at first. */
  MetadataDelta reset() {
    MetadataDelta delta = delta();
    for (Topic topic : topics) {
      if (size(topic) > 0) {
        delta.replay(new RemoveTopicRecord().setTopicId(topic.id));
      }
    }
    image = delta.apply(next());
    delta = delta();
    for (Topic topic : topics) {
      grow(delta, topic, 0, topic.size);
    }
    return after(delta);
  }

  /** The topic has so many partitions from now on; -1: it is deleted; as many as before: a leader moves. */
  MetadataDelta change(int number, int size) {
    MetadataDelta delta = delta();
    Topic topic = topics.get(number);
    int before = size(topic);
    if (size < 0) {
      delta.replay(new RemoveTopicRecord().setTopicId(topic.id));
    } else if (size == before) {
      delta.replay(
          new PartitionChangeRecord().setTopicId(topic.id).setPartitionId(0).setLeader(ELSEWHERE));
    } else {
      grow(delta, topic, before, size);
    }
    return after(delta);
  }

  private MetadataDelta delta() {
    return new MetadataDelta.Builder().setImage(image).build();
  }

  private MetadataDelta after(MetadataDelta delta) {
    image = delta.apply(next());
    return delta;
  }

  /** Each image is of a later offset of the metadata log: regular expressions are resolved by it. */
  private MetadataProvenance next() {
    version++;
    return (MetadataProvenance)
        Kafka.wire(
            MetadataProvenance.class,
            type -> type == long.class ? (Object) version : type == int.class ? (Object) 0 : (Object) true);
  }

  private int size(Topic topic) {
    TopicImage found = image.topics().getTopic(topic.id);
    return found == null ? 0 : found.partitions().size();
  }

  private static void grow(MetadataDelta delta, Topic topic, int before, int size) {
    if (before == 0 && size > 0) {
      delta.replay(new TopicRecord().setName(topic.name).setTopicId(topic.id));
    }
    for (int partition = before; partition < size; partition++) {
      delta.replay(
          new PartitionRecord()
              .setTopicId(topic.id)
              .setPartitionId(partition)
              .setReplicas(List.of(ELSEWHERE))
              .setIsr(List.of(ELSEWHERE))
              .setLeader(ELSEWHERE)
              .setLeaderEpoch(0)
              .setPartitionEpoch(0));
    }
  }

  /** What the harness calls a partition. */
  int number(Uuid id, int partition) {
    for (Topic topic : topics) {
      if (topic.id.equals(id)) {
        return topic.first + partition;
      }
    }
    throw new IllegalStateException("no topic of the harness has the id " + id);
  }

  /** The partitions that the harness calls so, by topic id. */
  Map<Uuid, Set<Integer>> byTopic(Collection<Integer> numbers) {
    Map<Uuid, Set<Integer>> found = new HashMap<>();
    for (int number : numbers) {
      Topic topic = topics.stream().filter(each -> each.first <= number).reduce((one, next) -> next).get();
      found.computeIfAbsent(topic.id, id -> new HashSet<>()).add(number - topic.first);
    }
    return found;
  }
}
