-- What a dispatcher's process holds in memory, told with its heartbeat, for the operators' page; null of an older one.
alter table dispatchers add column memory_mb integer;
