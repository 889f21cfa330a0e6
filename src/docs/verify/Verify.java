import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class Verify {
    /** {@code body} is the body exactly as received; {@code signature} is the header X-SVC-Signature, or null. */
    public static boolean isSigned(String secret, byte[] body, String signature)
            throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        String expected = "sha256=" + HexFormat.of().formatHex(mac.doFinal(body));
        String given = signature == null ? "" : signature;
        return MessageDigest.isEqual(
                expected.getBytes(StandardCharsets.UTF_8), given.getBytes(StandardCharsets.UTF_8));
    }

    // java Verify.java <secret> <signature> < body
    public static void main(String[] args) throws Exception {
        System.exit(isSigned(args[0], System.in.readAllBytes(), args[1]) ? 0 : 1);
    }
}
