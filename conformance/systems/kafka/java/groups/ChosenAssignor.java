package kconform;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The only assignor of a coordinator of KIP-848 groups: Kafka's RangeAssignor, unless the harness has
 * chosen the target, as the specification leaves open which even one it is.
 */
final class ChosenAssignor {
  private static final String ASSIGNOR =
      "org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor";

  private final GroupTopics topics;
  private Map<String, Set<Integer>> chosen;

  /** Takes the place of what the GroupCoordinatorConfig names. Up to 3.9 nobody drives such groups. */
  ChosenAssignor(Object config, GroupTopics topics) {
    this.topics = topics;
    if (!Kafka.exists(ASSIGNOR)) {
      return;
    }
    Object range = Kafka.make(Kafka.type("org.apache.kafka.coordinator.group.assignor.RangeAssignor"));
    Object assignor =
        Kafka.play(
            Kafka.type(ASSIGNOR),
            (proxy, method, arguments) ->
                chosen != null && method.getName().equals("assign")
                    ? target()
                    : Kafka.call(range, method.getName(), arguments == null ? new Object[0] : arguments));
    Kafka.set(config, "consumerGroupAssignors", List.of(assignor));
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

  private Object target() {
    Map<String, Object> members = new HashMap<>();
    chosen.forEach(
        (member, partitions) -> members.put(member, Kafka.make(
            Kafka.type("org.apache.kafka.coordinator.group.modern.MemberAssignmentImpl"), topics.byTopic(partitions))));
    return Kafka.make(
        Kafka.type("org.apache.kafka.coordinator.group.api.assignor.GroupAssignment"), members);
  }
}
