package kconform;

import java.nio.ByteBuffer;
import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;

/**
 * Random numbers that count, so that member ids are the same in every run.
 *
 * <p>A coordinator makes a member id of UUID.randomUUID, and a hash map's order, by which it may
 * choose a leader, follows from it. Java takes the first provider of SecureRandom that it finds.
 */
public final class CountedIds extends Provider {
  private static long last;

  private CountedIds() {
    super("kconform", "1", "numbers that count up from a reset");
    put("SecureRandom.Counted", Counted.class.getName());
  }

  /** To be called before the first UUID is made. */
  static void install() {
    Security.insertProviderAt(new CountedIds(), 1);
  }

  static void reset() {
    last = 0;
  }

  /** Made by Java's security framework. */
  public static final class Counted extends SecureRandomSpi {
    private static final long serialVersionUID = 1;

    @Override
    protected void engineSetSeed(byte[] seed) {}

    @Override
    protected void engineNextBytes(byte[] bytes) {
      byte[] number = ByteBuffer.allocate(Long.BYTES).putLong(++last).array();
      for (int i = 0; i < bytes.length; i++) {
        int fromEnd = bytes.length - i;
        bytes[i] = fromEnd > number.length ? 0 : number[number.length - fromEnd];
      }
    }

    @Override
    protected byte[] engineGenerateSeed(int count) {
      return new byte[count];
    }
  }
}
