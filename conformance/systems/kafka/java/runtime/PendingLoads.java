package kconform;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntSupplier;

/** A CoordinatorLoader that stands still: the harness ends each load, and Kafka's own loader reads. */
final class PendingLoads implements InvocationHandler {
  private record Load(int epoch, Object playback, CompletableFuture<Object> done) {}

  private final LoadedLog log;
  private final LedPartition partition;
  private final IntSupplier epoch;
  private final List<Load> loads = new ArrayList<>();

  PendingLoads(LoadedLog log, LedPartition partition, IntSupplier epoch) {
    this.log = log;
    this.partition = partition;
    this.epoch = epoch;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) {
    if (!method.getName().equals("load")) {
      return null;
    }
    Load load = new Load(epoch.getAsInt(), arguments[1], new CompletableFuture<>());
    loads.add(load);
    return load.done;
  }

  /** In which tenures the loads began. */
  List<Integer> epochs() {
    return loads.stream().map(Load::epoch).toList();
  }

  /** Reads the log to its end. Refused if no load of that epoch is under way. */
  void end(int epoch) {
    Load load =
        loads.stream()
            .filter(one -> one.epoch == epoch)
            .findFirst()
            .orElseThrow(() -> new Broker.Refused("no load of epoch " + epoch + " is under way"));
    loads.remove(load);
    log.load(partition, load.playback)
        .whenComplete(
            (summary, error) -> {
              if (error == null) {
                load.done.complete(summary);
              } else {
                load.done.completeExceptionally(error);
              }
            });
  }
}
