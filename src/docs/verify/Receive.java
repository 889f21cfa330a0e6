// javac Verify.java Receive.java && WEBHOOK_SECRET=... PORT=4000 java Receive
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;

public final class Receive {
    private static final String SECRET = System.getenv("WEBHOOK_SECRET");
    private static final Set<String> HANDLED = ConcurrentHashMap.newKeySet(); // store these in a database table

    static int answer(Headers headers, byte[] body) throws Exception {
        if (!Verify.isSigned(SECRET, body,
                headers.getFirst("X-SVC-Signature"), headers.getFirst("X-SVC-Signature-Previous"))) return 401;
        String sent = field(body, "delivered_at");
        if (sent != null) {
            Duration age = Duration.between(OffsetDateTime.parse(sent), OffsetDateTime.now());
            if (age.abs().toMinutes() >= 5) return 401;
        }
        if (!HANDLED.add(field(body, "event_id"))) return 200;
        System.out.println(field(body, "event") + " " + field(body, "event_id")); // put the event into your queue
        return 204;
    }

    /** Reads a text field at the top level of the body; use your JSON library instead. */
    static String field(byte[] body, String name) {
        var text = new String(body, StandardCharsets.UTF_8);
        var found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(text);
        return found.find() ? found.group(1) : null;
    }

    public static void main(String[] args) throws Exception {
        if (SECRET == null || SECRET.isEmpty()) {
            System.err.println("Set WEBHOOK_SECRET to the subscription's secret.");
            System.exit(1);
        }
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "4000"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> {
            int status = 500;
            try {
                status = answer(exchange.getRequestHeaders(), exchange.getRequestBody().readAllBytes());
            } catch (Exception error) {
                error.printStackTrace();
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
    }
}
