-- The ids of the records that setup and the services routes create (db/own-ids.ts).
create sequence own_ids as integer minvalue 2147000000 maxvalue 2147483647;
