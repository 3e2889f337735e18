# ruby vcr.rb BASE DIRECTORY NAME yaml|json: needs the gems vcr and webmock. JSON holds no binary body: there all are base64.
require 'json'
require 'net/http'
require 'vcr'
require 'webmock'

BASE, DIRECTORY, NAME, FORM = ARGV
VCR.configure do |c|
  c.cassette_library_dir = DIRECTORY
  c.hook_into :webmock
  c.preserve_exact_body_bytes { FORM == 'json' }
end

def ask(path, body = nil, headers = {})
  uri = URI(BASE + path)
  request = (body ? Net::HTTP::Post : Net::HTTP::Get).new(uri, headers)
  request.body = body if body
  Net::HTTP.start(uri.host, uri.port) { |http| http.request(request) }
end

VCR.use_cassette(NAME, record: :all, serialize_with: FORM.to_sym) do
  ask('/json?api_key=Lk4nB7vC2xZ9aa', nil, 'Authorization' => 'Bearer sk-verysecretverysecret123')
  ask('/zipped', nil, 'Accept-Encoding' => 'gzip')
  %w[/binary /lines /empty /nowhere].each { |path| ask(path) }
  ask('/echo', JSON.generate({ name: 'café' }), 'Content-Type' => 'application/json')
  ask('/echo', "\xff\xfe\x00".b, 'Content-Type' => 'application/octet-stream')
  ask('/echo', 'a=1+2&b=x', 'Content-Type' => 'application/x-www-form-urlencoded')
end
