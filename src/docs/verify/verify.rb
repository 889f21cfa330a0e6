require "openssl"

# body is the body exactly as received; signature is the header X-SVC-Signature, or nil.
def signed?(secret, body, signature)
  expected = "sha256=" + OpenSSL::HMAC.hexdigest("SHA256", secret, body)
  given = signature.to_s
  given.bytesize == expected.bytesize && OpenSSL.fixed_length_secure_compare(given, expected)
end

if __FILE__ == $PROGRAM_NAME
  # ruby verify.rb <secret> <signature> < body
  exit(signed?(ARGV[0], $stdin.binmode.read, ARGV[1]) ? 0 : 1)
end
