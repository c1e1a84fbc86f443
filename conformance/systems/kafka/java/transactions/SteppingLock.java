package kconform;

import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * The lock of TransactionStateManager, at which a step of the harness can stand still.
 *
 * <p>A coordinator that fences a transaction marks it under the metadata's lock, and takes the lock
 * again to end it. In between the thread asks for this lock; others may come first.
 */
final class SteppingLock extends ReentrantReadWriteLock {
  private static final String STOPS_IN = "endTransaction";

  private final ReadLock reading = new SteppingReadLock(this);
  private Stepping stopping;

  /** This step stands still where it next comes to the end of a transaction. */
  void stop(Stepping step) {
    stopping = step;
  }

  @Override
  public ReadLock readLock() {
    return reading;
  }

  private final class SteppingReadLock extends ReadLock {
    SteppingReadLock(ReentrantReadWriteLock lock) {
      super(lock);
    }

    @Override
    public void lock() {
      Stepping step = stopping;
      if (step != null && step.isRunning() && endsTransaction()) {
        stopping = null;
        try {
          step.ask(this);
        } catch (InterruptedException stopped) {
          Thread.currentThread().interrupt();
        }
      }
      super.lock();
    }
  }

  private static boolean endsTransaction() {
    return StackWalker.getInstance()
        .walk(frames -> frames.anyMatch(frame -> frame.getMethodName().contains(STOPS_IN)));
  }
}
