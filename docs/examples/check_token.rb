# gem install jwt
require "json"
require "jwt"
require "net/http"

ROOT = ENV.fetch("REVIEWRELAY") # SERVER_ROOT of ReviewRelay, such as https://reviews.example
SCOPES = ["*", "reviews:read"].freeze # one of these opens your route

# Reads the keys every five minutes, and at most once a minute for a token with an unknown key.
KEYS = lambda do |options|
  @read_at = nil if @read_at && Time.now - @read_at > (options[:kid_not_found] ? 60 : 300)
  @keys = nil unless @read_at
  @keys ||= JSON.parse(Net::HTTP.get(URI("#{ROOT}/.well-known/jwks.json"))).tap { @read_at = Time.now }
end

# Answers the id of the user without asking. A revoked token passes until it expires.
def check_by_keys(token)
  claims, header = JWT.decode(
    token, nil, true,
    algorithms: ["RS256"], jwks: KEYS, iss: ROOT, verify_iss: true, aud: "#{ROOT}/api", verify_aud: true,
    required_claims: %w[exp sub scope]
  )
  raise "The token is no access token." unless header["typ"] == "at+jwt"
  raise "The token lacks the scope." unless claims["scope"].split.intersect?(SCOPES)
  Integer(claims["sub"])
end

# Asks ReviewRelay, which refuses a revoked token at once.
def introspect(token)
  headers = { "Authorization" => "Bearer #{ENV.fetch("SERVICE_TOKEN")}", "Content-Type" => "application/json" }
  response = Net::HTTP.post(URI("#{ROOT}/api/v1/platform/introspect"), { token: token }.to_json, headers)
  raise "The introspection was answered #{response.code}." unless response.is_a?(Net::HTTPOK)
  told = JSON.parse(response.body)
  raise "The token is not valid here." unless told["active"] && told["scope"].split.intersect?(SCOPES)
  told["user_id"]
end

if __FILE__ == $PROGRAM_NAME
  # ruby check_token.rb < tokens, one a line
  $stdin.each_line(chomp: true) do |token|
    puts([:check_by_keys, :introspect].map { |check| send(check, token) rescue (warn($!.message) || "-") }.join(" "))
  end
end
