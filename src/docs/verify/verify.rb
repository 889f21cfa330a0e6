require "openssl"

# body is the body exactly as received; signatures are the headers X-SVC-Signature and X-SVC-Signature-Previous, or nil.
def signed?(secret, body, *signatures)
  expected = "sha256=" + OpenSSL::HMAC.hexdigest("SHA256", secret, body)
  signatures.map(&:to_s).any? do |given|
    given.bytesize == expected.bytesize && OpenSSL.fixed_length_secure_compare(given, expected)
  end
end

if __FILE__ == $PROGRAM_NAME
  # ruby verify.rb <secret> <signature> [<previous signature>] < body
  exit(signed?(ARGV[0], $stdin.binmode.read, *ARGV[1..]) ? 0 : 1)
end
