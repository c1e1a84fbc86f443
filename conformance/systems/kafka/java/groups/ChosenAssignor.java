package kconform;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The assignors of a coordinator of KIP-848 groups: Kafka's own, by their names, unless the harness has
 * chosen the target, as the specification leaves open which even one it is.
 */
final class ChosenAssignor {
  private static final String ASSIGNOR =
      "org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor";
  private static final Map<String, String> KAFKAS = Map.of("range", "RangeAssignor", "uniform", "UniformAssignor");

  private final GroupTopics topics;
  private Map<String, Set<Integer>> chosen;
  private String last;

  /** Takes the place of what the GroupCoordinatorConfig names. Up to 3.9 nobody drives such groups. */
  ChosenAssignor(Object config, GroupTopics topics, List<String> names) {
    this.topics = topics;
    if (Kafka.exists(ASSIGNOR)) {
      Kafka.set(config, "consumerGroupAssignors", names.stream().map(this::assignor).toList());
    }
  }

  private Object assignor(String name) {
    Object kafkas = Kafka.make(Kafka.type("org.apache.kafka.coordinator.group.assignor." + KAFKAS.get(name)));
    return Kafka.play(
        Kafka.type(ASSIGNOR),
        (proxy, method, arguments) -> {
          boolean assigns = method.getName().equals("assign");
          if (assigns) {
            last = name;
          }
          return assigns && chosen != null
              ? target()
              : Kafka.call(kafkas, method.getName(), arguments == null ? new Object[0] : arguments);
        });
  }

  /** While the code runs, the target is this: partitions by member id. null: Kafka's assignor decides. */
  void whileChosen(Map<String, Set<Integer>> target, Runnable code) {
    chosen = target;
    try {
      code.run();
    } finally {
      chosen = null;
    }
  }

  /** The name of the one that has made a target last; null if none has. */
  String last() {
    return last;
  }

  /** Forgets which one made a target. */
  void forget() {
    last = null;
  }

  private Object target() {
    Map<String, Object> members = new HashMap<>();
    chosen.forEach(
        (member, partitions) -> members.put(member, Kafka.make(
            Kafka.type("org.apache.kafka.coordinator.group.modern.MemberAssignmentImpl"), topics.byTopic(partitions))));
    return Kafka.make(
        Kafka.type("org.apache.kafka.coordinator.group.api.assignor.GroupAssignment"), members);
  }
}
