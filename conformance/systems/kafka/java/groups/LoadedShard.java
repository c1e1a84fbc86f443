package kconform;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * A shard of a coordinator that is loaded, as CoordinatorLoaderImpl does it: each record is
 * deserialised and replayed.
 */
final class LoadedShard implements LogReader {
  private static final String COORDINATOR = "org.apache.kafka.coordinator.";

  private final Object shard;
  private final Object serde;
  private final Function<Object, String> text;

  private LoadedShard(Object shard, Object serde, Function<Object, String> text) {
    this.shard = shard;
    this.serde = serde;
    this.text = text;
  }

  @Override
  public void read(Loads.Entry entry) {
    if (entry.commit() != null) {
      TransactionResult result =
          entry.commit() ? TransactionResult.COMMIT : TransactionResult.ABORT;
      Kafka.call(shard, "replayEndTransactionMarker", entry.producer(), entry.epoch(), result);
      return;
    }
    Object record;
    try {
      record = Kafka.call(serde, "deserialize", ByteBuffer.wrap(entry.key()), entry.valueBuffer());
    } catch (RuntimeException error) {
      if (error.getClass().getSimpleName().equals("UnknownRecordTypeException")) {
        return; // as the loader does: a warning, and the next record
      }
      throw error;
    }
    Kafka.call(shard, "replay", entry.offset(), entry.producer(), entry.epoch(), record);
  }

  @Override
  public String text() {
    return text.apply(shard);
  }

  /** Makes shards; their configuration is the default. */
  private abstract static class Maker {
    private final Object serde;
    private final Object metrics;
    private final TopicPartition partition;
    private final Function<Object, String> text;
    private final Object logContext = Kafka.make(Kafka.type("LogContext"), "");

    /** Of all shards that it makes. */
    final Virtual.Clock clock = new Virtual.Clock();

    Maker(String serde, Object metrics, String topic, Function<Object, String> text) {
      this.serde = Kafka.make(Kafka.type(COORDINATOR + serde));
      this.metrics = metrics;
      partition = new TopicPartition(topic, 0);
      this.text = text;
    }

    abstract Object builder();

    LogReader make() {
      Object builder = runtimeBuilder();
      return new LoadedShard(Kafka.call(builder, "build"), serde, text);
    }

    /** A builder that has all that it needs; a runtime gives it parts of its own. */
    Object runtimeBuilder() {
      Object builder = builder();
      for (Method method : builder.getClass().getMethods()) {
        if (method.getName().startsWith("with")) {
          Kafka.call(
              builder, method.getName(), part(Kafka.raw(method.getGenericParameterTypes()[0])));
        }
      }
      return builder;
    }

    private Object part(Class<?> type) {
      if (type == Time.class) {
        return clock;
      }
      if (type == SnapshotRegistry.class) {
        return Kafka.make(type, logContext);
      }
      if (type == TopicPartition.class) {
        return partition;
      }
      if (type == Optional.class) {
        return Optional.empty();
      }
      return switch (type.getSimpleName()) {
        case "LogContext" -> logContext;
        case "CoordinatorMetrics" -> metrics;
        default -> Kafka.play(type, (proxy, method, arguments) -> null);
      };
    }
  }

  /** GroupCoordinatorShard. */
  static final class OfGroups extends Maker {
    private static final String PACKAGE = COORDINATOR + "group.";

    private final Object config;
    private final Object groupConfigs;

    OfGroups() {
      this(Map.of());
    }

    OfGroups(Map<String, String> properties) {
      super(
          "group.GroupCoordinatorRecordSerde",
          Kafka.make(Kafka.type(PACKAGE + "metrics.GroupCoordinatorMetrics")),
          "__consumer_offsets",
          StateText::ofGroups);
      config = Kafka.callStatic(Kafka.type(PACKAGE + "GroupCoordinatorConfig"), "fromProps", properties);
      groupConfigs = Kafka.wire(Kafka.type(PACKAGE + "GroupConfigManager"), this::groupConfig);
    }

    @Override
    Object builder() {
      Class<?> type = Kafka.type(PACKAGE + "GroupCoordinatorShard$Builder");
      return Kafka.make(type, config, groupConfigs);
    }

    /** Every group has the default configuration. */
    Object groupConfigs() {
      return groupConfigs;
    }

    /** A load asks for no group's configuration: all of it is the default. */
    private Object groupConfig(java.lang.reflect.Type type) {
      Class<?> raw = Kafka.raw(type);
      return raw == Map.class
          ? Map.of()
          : raw.isInstance(config) ? config : Kafka.make(raw, defaults(config.getClass(), raw));
    }
  }

  /** ShareCoordinatorShard. */
  static final class OfShares extends Maker {
    private static final String PACKAGE = COORDINATOR + "share.";
    private static final Class<?> CONFIG = Kafka.type(PACKAGE + "ShareCoordinatorConfig");

    private final Object config;

    OfShares() {
      this(Map.of());
    }

    OfShares(Map<String, Object> properties) {
      super(
          "share.ShareCoordinatorRecordSerde",
          Kafka.make(Kafka.type(PACKAGE + "metrics.ShareCoordinatorMetrics"), new Metrics()),
          "__share_group_state",
          StateText::ofShares);
      config = Kafka.make(CONFIG, configured(properties, CONFIG));
    }

    @Override
    Object builder() {
      return Kafka.make(Kafka.type(PACKAGE + "ShareCoordinatorShard$Builder"), config);
    }
  }

  private static AbstractConfig defaults(Class<?>... types) {
    return configured(Map.of(), types);
  }

  private static AbstractConfig configured(Map<String, Object> properties, Class<?>... types) {
    ConfigDef all = new ConfigDef(); // releases before 4.0 have no Utils.mergeConfigs
    for (Class<?> each : types) {
      ((ConfigDef) Kafka.getStatic(each, "CONFIG_DEF")).configKeys().values().forEach(all::define);
    }
    return new AbstractConfig(all, properties, false);
  }
}
