-- Operators list the accounts of a plan, the newest first, and count those of each plan.
create index companies_plan on companies (plan_id, id desc) where plan_id is not null;
