package kconform;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.common.DirectoryEventHandler;

/**
 * The controller's end of the assignment of directories (KIP-858), and AssignmentsManager's: what a
 * broker's DirectoryEventHandler is told, what is in flight, what the controller has written.
 */
final class DirectoryAssignments {
  private static final String PROMOTION = "Future replica promotion";
  private static final Map<String, Uuid> IDS = Map.of("d1", new Uuid(5, 1), "d2", new Uuid(5, 2));

  /**
   * A request to assign the replica to a directory. `promotes` is the thread whose move waits for it,
   * or null: an idle thread ends, and its call-back changes nothing any more.
   */
  record Request(Uuid directory, Object promotes, Runnable callback) {}

  /** What the broker's ReplicaManager and its threads tell. */
  final Object handler = Kafka.play(DirectoryEventHandler.class, (proxy, method, arguments) -> told(method.getName(), arguments));

  private final Supplier<Object> mover;
  Request ready;
  Request inflight;
  boolean written;
  boolean unlearned;
  private String assigned;
  private List<Uuid> registered;

  /** `mover` gives the thread of moves that its manager has; null: it has none. */
  DirectoryAssignments(Supplier<Object> mover) {
    this.mover = mover;
  }

  private Object told(String method, Object[] arguments) {
    switch (method) {
      case "handleAssignment" ->
          ready =
              new Request(
                  (Uuid) arguments[1], arguments[2].equals(PROMOTION) ? mover.get() : null, (Runnable) arguments[3]);
      case "equals" -> {
        return arguments[0] == handler;
      }
      case "hashCode" -> {
        return System.identityHashCode(handler);
      }
      case "toString" -> {
        return "DirectoryAssignments";
      }
      default -> {} // a directory that has failed
    }
    return null;
  }

  // ---- life --------------------------------------------------------------------------------

  /** The controller knows where the replica lies. */
  void reset() {
    assigned = "d1";
    restarted();
  }

  /** A process begins: nothing is asked, and its first delta is the whole metadata. */
  void restarted() {
    ready = null;
    inflight = null;
    written = false;
    unlearned = false;
    register();
  }

  /** A record brings Uuids of its own: TopicDelta.localChanges compares them by identity. */
  private void register() {
    Uuid id = IDS.get(assigned);
    registered = List.of(new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits()), new Uuid(5, 3));
  }

  /** The id of a log directory, as `kafka-storage format` writes it. */
  static void format(File directory) throws IOException {
    Path file = directory.toPath().resolve("meta.properties");
    String id = IDS.get(directory.getName()).toString();
    Files.writeString(file, "version=1\ncluster.id=kconform\nnode.id=" + DirectoryBroker.ID + "\ndirectory.id=" + id + "\n");
  }

  // ---- steps -------------------------------------------------------------------------------

  void send() {
    if (ready == null || inflight != null) {
      throw new Broker.Refused("nothing is to be sent");
    }
    inflight = ready;
    ready = null;
  }

  void write() {
    if (inflight == null || written) {
      throw new Broker.Refused("the controller is asked nothing");
    }
    written = true;
    String before = assigned;
    assigned = name(inflight);
    unlearned |= !assigned.equals(before);
  }

  void answer() {
    if (!written) {
      throw new Broker.Refused("the controller has answered nothing");
    }
    Request answered = inflight;
    inflight = null;
    written = false;
    try {
      answered.callback().run();
    } catch (RuntimeException ignored) {
      // As AssignmentsManager does: a move that is given up has no promotion state any more.
    }
  }

  void fail() {
    if (inflight == null) {
      throw new Broker.Refused("nothing is in flight");
    }
    ready = ready == null ? inflight : ready;
    inflight = null;
    written = false;
  }

  void learned() {
    if (!unlearned) {
      throw new Broker.Refused("the metadata have nothing new");
    }
    unlearned = false;
    register();
  }

  // ---- what is seen ------------------------------------------------------------------------

  String assigned() {
    return assigned;
  }

  /** PartitionRegistration.directories: of this broker, and of the other. */
  List<Uuid> registered() {
    return registered;
  }

  Uuid assignedId() {
    return IDS.get(assigned);
  }

  /** The directory that is asked for, or none. */
  static String name(Request request) {
    return request == null
        ? "none"
        : IDS.entrySet().stream()
            .filter(each -> each.getValue().equals(request.directory()))
            .findFirst()
            .orElseThrow()
            .getKey();
  }

  boolean promotes(Request request) {
    return request != null && request.promotes() != null && request.promotes() == mover.get();
  }
}
