# WEBHOOK_SECRET=... rackup --port 4000 receive.ru   (gems: rackup, puma)
require "json"
require "time"
require_relative "verify"

SECRET = ENV.fetch("WEBHOOK_SECRET", "")
abort "Set WEBHOOK_SECRET to the subscription's secret." if SECRET.empty?
HANDLED = {} # store these in a database table

def answer(env, body)
  signatures = env.values_at("HTTP_X_SVC_SIGNATURE", "HTTP_X_SVC_SIGNATURE_PREVIOUS")
  return 401 unless signed?(SECRET, body, *signatures)
  event = JSON.parse(body)
  sent = event["delivered_at"]
  return 401 if sent && (Time.now - Time.iso8601(sent)).abs > 300
  return 200 if HANDLED.key?(event["event_id"])
  puts "#{event["event"]} #{event["event_id"]}" # put the event into your queue
  HANDLED[event["event_id"]] = true
  204
end

run ->(env) { [answer(env, env["rack.input"].read), {}, []] }
