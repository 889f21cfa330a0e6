import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class Verify {
    /** {@code body} is the body exactly as received; give it X-SVC-Signature and X-SVC-Signature-Previous, or null. */
    public static boolean isSigned(String secret, byte[] body, String... signatures)
            throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        byte[] expected = ("sha256=" + HexFormat.of().formatHex(mac.doFinal(body))).getBytes(StandardCharsets.UTF_8);
        for (String one : signatures) {
            String given = one == null ? "" : one;
            if (MessageDigest.isEqual(expected, given.getBytes(StandardCharsets.UTF_8))) return true;
        }
        return false;
    }

    // java Verify.java <secret> <signature> [<previous signature>] < body
    public static void main(String[] args) throws Exception {
        String[] signatures = Arrays.copyOfRange(args, 1, args.length);
        System.exit(isSigned(args[0], System.in.readAllBytes(), signatures) ? 0 : 1);
    }
}
