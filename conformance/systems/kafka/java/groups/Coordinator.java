package kconform;

import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.config.AbstractConfig;

/** A broker's group coordinator, of the old generation or of the new one. */
interface Coordinator {
  /** A timer of the group's, and what it does when it fires. */
  record GroupTimer(Kind kind, String memberId, int remainingMs, Runnable fire) {}

  /** What a timer waits for. */
  enum Kind {
    /** A member's session, its first JoinGroup, or its return with a member id. */
    HEARTBEAT,
    INITIAL_JOIN,
    JOIN,
    SYNC,
    /** A member's session and the return of what it is to revoke, in a group of KIP-848. */
    SESSION,
    REBALANCE
  }

  /** A coordinator of the same settings with nothing left of what this one did before it resigned. */
  Coordinator afresh();

  /** What implements Kafka's interface GroupCoordinator. */
  Object service();

  /** The broker becomes the coordinator, and loads the log. */
  void elect(int epoch);

  /** Another broker becomes the coordinator. */
  void resign(int epoch);

  /** GroupMetadata, ClassicGroup or ConsumerGroup; null if there is no group. */
  Object group(String id);

  /** The timers of a group and its members, oldest first. */
  List<GroupTimer> timers(String group);

  /** The future of the answer that a member waits for, as the coordinator holds it. */
  boolean holds(Object member, CompletableFuture<?> answer);

  /** The settings of a model and its topics; other settings are defaults, but for waits; empty: its default. */
  record Settings(
      int maxSize,
      int initialDelayMs,
      String migrationPolicy,
      List<GroupTopics.Topic> topics,
      List<String> assignors,
      int assignmentIntervalMs) {
    Object on(OffsetsTopic topic) {
      Properties properties = new Properties();
      properties.putAll(((AbstractConfig) topic.process.config()).originals());
      properties.putAll(
          Map.of(
              "group.max.size", String.valueOf(maxSize),
              "group.consumer.max.size", String.valueOf(maxSize),
              "group.initial.rebalance.delay.ms", String.valueOf(initialDelayMs),
              "group.consumer.assignment.interval.ms", String.valueOf(assignmentIntervalMs),
              "group.coordinator.append.linger.ms", "0",
              "offsets.topic.num.partitions", "1"));
      if (!migrationPolicy.isEmpty()) {
        properties.put("group.consumer.migration.policy", migrationPolicy);
      }
      return Kafka.callStatic(Kafka.type("kafka.server.KafkaConfig"), "fromProps", properties);
    }
  }

  /** The coordinator that this version runs unless it is told otherwise. */
  static Coordinator on(OffsetsTopic topic, Settings settings) {
    Object config = settings.on(topic);
    return isScala(config)
        ? new ScalaCoordinator(topic, config)
        : new ShardCoordinator(topic, config, settings);
  }

  /** From 4.0 on group.coordinator.new.enable is true by default; 4.0 still has both. */
  private static boolean isScala(Object config) {
    return Kafka.exists(ScalaCoordinator.ADAPTER)
        && !(boolean) Kafka.call(config, "isNewGroupCoordinatorEnabled");
  }
}
