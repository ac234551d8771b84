import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.MapPropertySource;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.util.backoff.FixedBackOff;

/**
 * Listeners of Spring Kafka that fail with every record: PREFIX-retryable retries by topics
 * (@RetryableTopic), PREFIX-plain in the listener, with a DeadLetterPublishingRecoverer. Sends one
 * record to each, with the key "key", a repeated header, a null header, a binary header, and
 * headers with the names of inherited Java and JavaScript members. Prints each delivery. Arguments:
 * servers, PREFIX.
 */
public class Spring {
  public static void main(String[] args) throws Exception {
    try (var context = new AnnotationConfigApplicationContext()) {
      Map<String, Object> settings = Map.of("servers", args[0], "prefix", args[1]);
      context
          .getEnvironment()
          .getPropertySources()
          .addFirst(new MapPropertySource("arguments", settings));
      context.register(Settings.class, Listeners.class);
      context.registerShutdownHook();
      context.refresh();
      @SuppressWarnings("unchecked")
      KafkaTemplate<byte[], byte[]> template = context.getBean(KafkaTemplate.class);
      for (String name : new String[] {"retryable", "plain"}) {
        var record = new ProducerRecord<>(args[1] + "-" + name, bytes("key"), bytes(name));
        record.headers().add("twice", bytes("one"));
        record.headers().add("trace", bytes("abc"));
        record.headers().add("twice", bytes("two"));
        record.headers().add("none", null);
        record.headers().add("empty", bytes(""));
        record.headers().add("odd", new byte[] {(byte) 0xff, 0});
        for (String member : new String[] {"constructor", "toString", "__proto__", "hasOwnProperty"})
          record.headers().add(member, bytes(member));
        template.send(record).get();
      }
      Thread.currentThread().join();
    }
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Configuration(proxyBeanMethods = false)
  @EnableKafka
  @EnableKafkaRetryTopic
  static class Settings {
    @Bean
    DefaultKafkaProducerFactory<byte[], byte[]> producers(
        org.springframework.core.env.Environment environment) {
      return new DefaultKafkaProducerFactory<>(
          Map.of("bootstrap.servers", environment.getProperty("servers")),
          new ByteArraySerializer(),
          new ByteArraySerializer());
    }

    @Bean
    KafkaTemplate<byte[], byte[]> template(DefaultKafkaProducerFactory<byte[], byte[]> producers) {
      return new KafkaTemplate<>(producers);
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<byte[], byte[]> kafkaListenerContainerFactory(
        org.springframework.core.env.Environment environment) {
      return factory(environment);
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<byte[], byte[]> plainFactory(
        org.springframework.core.env.Environment environment,
        KafkaTemplate<byte[], byte[]> template) {
      var factory = factory(environment);
      var recoverer = new DeadLetterPublishingRecoverer(template);
      factory.setCommonErrorHandler(new DefaultErrorHandler(recoverer, new FixedBackOff(10, 1)));
      factory.getContainerProperties().setDeliveryAttemptHeader(true);
      return factory;
    }

    @Bean
    TaskScheduler scheduler() {
      return new ThreadPoolTaskScheduler();
    }

    private static ConcurrentKafkaListenerContainerFactory<byte[], byte[]> factory(
        org.springframework.core.env.Environment environment) {
      var factory = new ConcurrentKafkaListenerContainerFactory<byte[], byte[]>();
      Map<String, Object> settings =
          Map.of(
              "bootstrap.servers", environment.getProperty("servers"),
              "group.id", environment.getProperty("prefix") + "-group",
              "auto.offset.reset", "earliest");
      factory.setConsumerFactory(
          new DefaultKafkaConsumerFactory<>(
              settings, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
      return factory;
    }
  }

  static class Listeners {
    @RetryableTopic(
        attempts = "2",
        backOff = @BackOff(delay = 50),
        kafkaTemplate = "template",
        autoCreateTopics = "false",
        autoStartDltHandler = "false")
    @KafkaListener(topics = "${prefix}-retryable")
    void retryable(ConsumerRecord<byte[], byte[]> record) {
      print(record);
      throw new IllegalStateException(
          "the bank did not answer", new SocketTimeoutException("Read timed out"));
    }

    @KafkaListener(
        topics = "${prefix}-plain",
        groupId = "${prefix}-plain-group",
        containerFactory = "plainFactory")
    void plain(ConsumerRecord<byte[], byte[]> record) {
      print(record);
      throw new IllegalArgumentException("no such customer");
    }

    private static synchronized void print(ConsumerRecord<byte[], byte[]> record) {
      List<String> headers = new ArrayList<>();
      for (var header : record.headers())
        headers.add(
            "[\"%s\",%s]"
                .formatted(
                    header.key(),
                    header.value() == null
                        ? "null"
                        : "\"" + HexFormat.of().formatHex(header.value()) + "\""));
      System.out.printf(
          "{\"topic\":\"%s\",\"partition\":%d,\"value\":\"%s\",\"headers\":[%s]}%n",
          record.topic(),
          record.partition(),
          new String(record.value(), StandardCharsets.UTF_8),
          String.join(",", headers));
    }
  }
}
