package kconform;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Proxy;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What differs between Kafka's versions: the packages of its classes, whether they are Scala's or
 * Java's, and the arguments of their constructors.
 *
 * <p>From 3.8 to 4.4 most classes that the bridge touches moved to another package or another
 * language, while the names of classes, methods and fields stayed. So classes are found here by any
 * of their names, methods are called by name (private ones too), and values are turned into what a
 * parameter wants: a Java collection into a Scala one, an Optional into an Option.
 */
final class Kafka {
  private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
  private static final Map<Call, Callee> METHODS = new HashMap<>();
  private static final Map<Call, Field> FIELDS = new HashMap<>();
  private static final Map<Call, Boolean> PRESENT = new HashMap<>();
  private static final Map<Class<?>, Wiring<Constructor<?>>> LONGEST = new HashMap<>();
  private static final Map<Class<?>, Wiring<Constructor<?>>> PUBLIC = new HashMap<>();
  private static final Map<Call, Wiring<Method>> WIRED = new HashMap<>();
  private static final Map<String, Class<?>> CLASSES = new HashMap<>();

  private Kafka() {}

  private record Call(Class<?> type, String name, int arguments) {}

  /** In the place of a number of arguments: any, or a field. */
  private static final int METHOD = -1;
  private static final int FIELD = -2;

  /** A method that was found; `handle` takes all arguments, the receiver first, in one array. */
  private record Callee(Class<?>[] parameters, MethodHandle handle) {}

  /** What takes parameters, and their types: reflection parses them anew whenever it is asked. */
  private record Wiring<T>(T what, Type[] parameters) {}

  /** A version of Kafka that lacks what the bridge needs. */
  static final class Unsupported extends RuntimeException {
    Unsupported(String message) {
      super(message);
    }
  }

  // ---- classes -----------------------------------------------------------------------------

  /** Where a class was in one version or another, oldest first. */
  private static final Map<String, List<String>> PLACES =
      Map.ofEntries(
          Map.entry(
              "AppInfoParser",
              List.of("org.apache.kafka.common.utils", "org.apache.kafka.common.utils.internals")),
          Map.entry(
              "LogContext",
              List.of("org.apache.kafka.common.utils", "org.apache.kafka.common.utils.internals")),
          Map.entry("AlterPartitionManager", List.of("kafka.server", "org.apache.kafka.server.partition")),
          Map.entry("BrokerEndPoint", List.of("kafka.cluster", "org.apache.kafka.server.network")),
          Map.entry("BrokerTopicStats", List.of("kafka.server", "org.apache.kafka.storage.log.metrics")),
          Map.entry(
              "CoordinatorLoaderImpl",
              List.of("kafka.coordinator.group", "org.apache.kafka.coordinator.common.runtime")),
          Map.entry("DelayedActionQueue", List.of("kafka.server", "org.apache.kafka.server")),
          Map.entry(
              "DelayedOperationPurgatory",
              List.of("kafka.server", "org.apache.kafka.server.purgatory")),
          Map.entry(
              "EndTransactionMarker",
              List.of("org.apache.kafka.common.record", "org.apache.kafka.common.record.internal")),
          Map.entry(
              "ControlRecordType",
              List.of("org.apache.kafka.common.record", "org.apache.kafka.common.record.internal")),
          Map.entry(
              "TransactionLogValue",
              List.of(
                  "kafka.internals.generated",
                  "org.apache.kafka.coordinator.transaction.generated")),
          Map.entry(
              "FetchIsolation",
              List.of("org.apache.kafka.storage.internals.log", "org.apache.kafka.server.storage.log")),
          Map.entry(
              "FetchParams",
              List.of("org.apache.kafka.storage.internals.log", "org.apache.kafka.server.storage.log")),
          Map.entry(
              "KRaftMetadataCache", List.of("kafka.server.metadata", "org.apache.kafka.metadata")),
          Map.entry(
              "MemoryRecords",
              List.of("org.apache.kafka.common.record", "org.apache.kafka.common.record.internal")),
          Map.entry(
              "ProducerIdAndEpoch",
              List.of("org.apache.kafka.common.utils", "org.apache.kafka.common.utils.internals")),
          Map.entry(
              "QuotaFactory", List.of("kafka.server", "org.apache.kafka.server.quota")),
          Map.entry(
              "ReplicaQuota", List.of("kafka.server", "org.apache.kafka.server.quota")),
          Map.entry(
              "SimpleRecord",
              List.of("org.apache.kafka.common.record", "org.apache.kafka.common.record.internal")),
          Map.entry(
              "Compression",
              List.of("org.apache.kafka.common.compress")));

  /** A class by its full name, or by the simple name of one that moved. */
  static Class<?> type(String name) {
    return CLASSES.computeIfAbsent(name, Kafka::find);
  }

  /** Whether this version has the class. */
  static boolean exists(String name) {
    try {
      Class.forName(name, false, Kafka.class.getClassLoader());
      return true;
    } catch (ClassNotFoundException absent) {
      return false;
    }
  }

  private static Class<?> find(String name) {
    List<String> places = PLACES.get(name);
    List<String> names =
        places == null ? List.of(name) : places.stream().map(place -> place + "." + name).toList();
    for (String candidate : names) {
      try {
        return Class.forName(candidate);
      } catch (ClassNotFoundException absent) {
        continue;
      }
    }
    throw new Unsupported("none of " + names + " is among the jars");
  }

  // ---- calls -------------------------------------------------------------------------------

  /** Calls a method by name, whatever its visibility. */
  static Object call(Object target, String name, Object... arguments) {
    return invoke(target.getClass(), target, name, arguments);
  }

  /** Calls a static method, or one of a Scala companion object. */
  static Object callStatic(Class<?> type, String name, Object... arguments) {
    return invoke(type, null, name, arguments);
  }

  /** Calls a method without arguments that had another name until some version. */
  static Object callRenamed(Object target, String older, String newer) {
    return call(target, renamed(target, older, newer));
  }

  /** The name that a method has in this version. */
  static String renamed(Object target, String older, String newer) {
    return hasMethod(target, older) ? older : newer;
  }

  /** Whether there is a public method of that name. */
  static boolean hasMethod(Object target, String name) {
    return PRESENT.computeIfAbsent(
        new Call(target.getClass(), name, METHOD),
        key ->
            Arrays.stream(key.type.getMethods())
                .anyMatch(method -> method.getName().equals(key.name)));
  }

  /** Whether there is a public static method of that name. */
  static boolean hasStaticMethod(Class<?> type, String name) {
    return Arrays.stream(type.getMethods())
        .anyMatch(
            method ->
                method.getName().equals(name)
                    && java.lang.reflect.Modifier.isStatic(method.getModifiers()));
  }

  private static Object invoke(Class<?> type, Object target, String name, Object... arguments) {
    Call key = new Call(type, name, arguments.length);
    Callee callee = METHODS.get(key);
    if (callee == null) {
      callee = callee(method(type, name, arguments), target == null);
      METHODS.put(key, callee);
    }
    int receiver = target == null ? 0 : 1;
    Object[] all = new Object[arguments.length + receiver];
    if (target != null) {
      all[0] = target;
    }
    for (int i = 0; i < arguments.length; i++) {
      all[i + receiver] = coerce(callee.parameters[i], arguments[i]);
    }
    try {
      return (Object) callee.handle.invokeExact(all);
    } catch (Throwable error) {
      throw rethrow(error);
    }
  }

  private static Callee callee(Method method, boolean isStatic) {
    try {
      method.setAccessible(true);
      int count = method.getParameterCount() + (isStatic ? 0 : 1);
      MethodHandle handle = LOOKUP.unreflect(method).asFixedArity();
      MethodHandle spread =
          handle.asType(MethodType.genericMethodType(count)).asSpreader(Object[].class, count);
      return new Callee(method.getParameterTypes(), spread);
    } catch (IllegalAccessException error) {
      throw new Unsupported(method + " cannot be called: " + error.getMessage());
    }
  }

  private static Method method(Class<?> type, String name, Object[] arguments) {
    for (Class<?> at = type; at != null; at = at.getSuperclass()) {
      Method found = declared(at, name, arguments);
      if (found != null) {
        return found;
      }
    }
    for (Method method : type.getMethods()) { // default methods of interfaces
      if (matches(method, name, arguments)) {
        return method;
      }
    }
    throw new Unsupported(type.getName() + " has no " + name + " of " + arguments.length + " arguments");
  }

  private static Method declared(Class<?> type, String name, Object[] arguments) {
    for (Method method : type.getDeclaredMethods()) {
      if (!method.isBridge() && matches(method, name, arguments)) {
        return method;
      }
    }
    return null;
  }

  private static boolean matches(Method method, String name, Object[] arguments) {
    return method.getName().equals(name) && accepts(method.getParameterTypes(), arguments);
  }

  private static boolean accepts(Class<?>[] parameters, Object[] arguments) {
    if (parameters.length != arguments.length) {
      return false;
    }
    for (int i = 0; i < parameters.length; i++) {
      Object value = coerce(parameters[i], arguments[i]);
      if (value != null && !boxed(parameters[i]).isInstance(value)) {
        return false;
      }
    }
    return true;
  }

  private static Class<?> boxed(Class<?> type) {
    return type.isPrimitive() ? MethodType.methodType(type).wrap().returnType() : type;
  }

  /** The value as the parameter wants it. */
  private static Object coerce(Class<?> wanted, Object value) {
    if (value == null || wanted.isInstance(value)) {
      return value;
    }
    if (wanted == scala.collection.immutable.Map.class && value instanceof Map<?, ?> map) {
      return scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(map));
    }
    if (scala.collection.Map.class.isAssignableFrom(wanted) && value instanceof Map<?, ?> map) {
      return CollectionConverters.asScala(map);
    }
    if (scala.collection.Set.class.isAssignableFrom(wanted) && value instanceof Set<?> set) {
      return CollectionConverters.asScala(set).toSet();
    }
    if (wanted.isAssignableFrom(scala.collection.immutable.Seq.class) && value instanceof Collection<?> list) {
      return CollectionConverters.asScala(list).toSeq();
    }
    if (wanted == scala.collection.immutable.List.class && value instanceof Collection<?> list) {
      return CollectionConverters.asScala(list).toList();
    }
    if (wanted == Option.class && value instanceof Optional<?> optional) {
      return Option.apply(optional.orElse(null));
    }
    if (wanted == Set.class && value instanceof Collection<?> list) {
      return Set.copyOf(list);
    }
    if (wanted == short.class && value instanceof Integer number) {
      return number.shortValue();
    }
    if (wanted == long.class && value instanceof Integer number) {
      return number.longValue();
    }
    return value;
  }

  /** What may be thrown by code under test. */
  interface Throwing {
    Object run() throws Throwable;
  }

  private static Object run(Throwing code) {
    try {
      return code.run();
    } catch (InvocationTargetException error) {
      throw rethrow(error.getCause());
    } catch (Throwable error) {
      throw rethrow(error);
    }
  }

  @SuppressWarnings("unchecked")
  static <E extends Throwable> RuntimeException rethrow(Throwable error) throws E {
    throw (E) error;
  }

  // ---- fields ------------------------------------------------------------------------------

  /** A field's value, whatever its visibility. */
  static Object get(Object target, String name) {
    return run(() -> field(target.getClass(), name).get(target));
  }

  /** Whether there is a field of that name. */
  static boolean has(Object target, String name) {
    return PRESENT.computeIfAbsent(
        new Call(target.getClass(), name, FIELD),
        key ->
            Arrays.stream(key.type.getDeclaredFields())
                .anyMatch(field -> field.getName().equals(name)));
  }

  /** A static field's value. */
  static Object getStatic(Class<?> type, String name) {
    return run(() -> field(type, name).get(null));
  }

  /** The declared type of a field. */
  static Class<?> fieldType(Object target, String name) {
    return field(target.getClass(), name).getType();
  }

  /** What a lambda closes over: a field each, in the order of their use. */
  static List<Object> closedOver(Object lambda) {
    List<Object> values = new ArrayList<>();
    for (Field field : lambda.getClass().getDeclaredFields()) {
      field.setAccessible(true);
      values.add(run(() -> field.get(lambda)));
    }
    return values;
  }

  /** Sets a field, a final one too. */
  static void set(Object target, String name, Object value) {
    run(
        () -> {
          field(target.getClass(), name).set(target, value);
          return null;
        });
  }

  private static Field field(Class<?> type, String name) {
    return FIELDS.computeIfAbsent(new Call(type, name, 0), key -> findField(type, name));
  }

  private static Field findField(Class<?> type, String name) {
    for (Class<?> at = type; at != null; at = at.getSuperclass()) {
      for (Field field : at.getDeclaredFields()) {
        // Scala qualifies the names of private members that inner classes use.
        if (field.getName().equals(name) || field.getName().endsWith("$$" + name)) {
          field.setAccessible(true);
          return field;
        }
      }
    }
    throw new Unsupported(type.getName() + " has no field " + name);
  }

  // ---- constructors ------------------------------------------------------------------------

  /** Makes an object with the constructor that takes these arguments. */
  static Object make(Class<?> type, Object... arguments) {
    for (Constructor<?> constructor : type.getDeclaredConstructors()) {
      if (accepts(constructor.getParameterTypes(), arguments)) {
        return create(constructor, arguments);
      }
    }
    throw new Unsupported(
        type.getName() + " cannot be made of " + Arrays.stream(arguments).map(String::valueOf).toList());
  }

  /** Makes an object with its longest constructor; `value` says what each parameter gets. */
  static Object wire(Class<?> type, Function<Type, Object> value) {
    Wiring<Constructor<?>> longest =
        LONGEST.computeIfAbsent(type, key -> longest(key.getDeclaredConstructors()));
    return create(longest.what, wired(longest.parameters, value));
  }

  /** The same with its longest public constructor: the others are for Kafka's own tests. */
  static Object wirePublic(Class<?> type, Function<Type, Object> value) {
    Wiring<Constructor<?>> longest =
        PUBLIC.computeIfAbsent(type, key -> longest(key.getConstructors()));
    return create(longest.what, wired(longest.parameters, value));
  }

  private static Wiring<Constructor<?>> longest(Constructor<?>[] constructors) {
    Constructor<?> longest =
        Arrays.stream(constructors)
            .max(Comparator.comparingInt(Constructor::getParameterCount))
            .orElseThrow();
    return new Wiring<>(longest, longest.getGenericParameterTypes());
  }

  /** Calls the method of that name that has the most arguments; `value` says what each gets. */
  static Object wireCall(Object target, String name, Function<Type, Object> value) {
    Call key = new Call(target.getClass(), name, METHOD);
    return call(target, name, wired(WIRED.computeIfAbsent(key, Kafka::named).parameters, value));
  }

  private static Wiring<Method> named(Call key) {
    return Arrays.stream(key.type.getMethods())
        .filter(method -> method.getName().equals(key.name) && !method.isBridge())
        .max(Comparator.comparingInt(Method::getParameterCount))
        .map(method -> new Wiring<>(method, method.getGenericParameterTypes()))
        .orElseThrow(() -> new Unsupported(key.type.getName() + " has no " + key.name));
  }

  /** The same of a static method. */
  static Object wireStatic(Class<?> type, String name, Function<Type, Object> value) {
    for (Method method : type.getMethods()) {
      if (method.getName().equals(name)) {
        return callStatic(type, name, wired(method.getGenericParameterTypes(), value));
      }
    }
    throw new Unsupported(type.getName() + " has no " + name);
  }

  private static Object[] wired(Type[] parameters, Function<Type, Object> value) {
    return Arrays.stream(parameters).map(value).toArray();
  }

  private static Object create(Constructor<?> constructor, Object[] arguments) {
    constructor.setAccessible(true);
    Class<?>[] parameters = constructor.getParameterTypes();
    Object[] all = new Object[arguments.length];
    for (int i = 0; i < all.length; i++) {
      all[i] = coerce(parameters[i], arguments[i]);
    }
    return run(() -> constructor.newInstance(all));
  }

  /** The class of a parameter, without its type arguments. */
  static Class<?> raw(Type type) {
    return type instanceof ParameterizedType of ? (Class<?>) of.getRawType() : (Class<?>) type;
  }

  /** The same object (a Scala case class, a Java record) but for one of its fields. */
  static Object with(Object original, String name, Object value) {
    List<Object> values = new ArrayList<>();
    for (Field field : original.getClass().getDeclaredFields()) {
      if (!java.lang.reflect.Modifier.isStatic(field.getModifiers())) {
        values.add(field.getName().equals(name) ? value : get(original, field.getName()));
      }
    }
    return make(original.getClass(), values.toArray());
  }

  /** Scala's companion object. */
  static Object companion(String name) {
    Class<?> type = type(name + "$");
    return getStatic(type, "MODULE$");
  }

  /** An interface of Kafka's, played by the harness. */
  static Object play(Class<?> type, InvocationHandler handler) {
    return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler);
  }

  // ---- values ------------------------------------------------------------------------------

  /** Scala's or Java's collection as Java's. */
  static Iterable<?> each(Object collection) {
    return collection instanceof scala.collection.Iterable<?> scala
        ? CollectionConverters.asJava(scala)
        : (Iterable<?>) collection;
  }

  /** Scala's or Java's map as Java's. */
  static Map<?, ?> map(Object map) {
    return map instanceof scala.collection.Map<?, ?> scala
        ? CollectionConverters.asJava(scala)
        : (Map<?, ?>) map;
  }

  /** What an Option or an Optional holds, or null; any other object is what it is. */
  static Object orNull(Object maybe) {
    if (maybe instanceof Option<?> option) {
      return option.isDefined() ? option.get() : null;
    }
    return maybe instanceof Optional<?> optional ? optional.orElse(null) : maybe;
  }

  static int integer(Object number) {
    return ((Number) number).intValue();
  }

  static long number(Object number) {
    return ((Number) number).longValue();
  }
}
