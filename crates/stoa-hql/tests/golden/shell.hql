# Statements may span lines; comments may stand between them.
create
  table t
  # within a statement, too
  (a);

insert into t values ('r', 'a', 'x;y'); select * from t;
select * from t where row = 'r'
print
\p
\c
source part.hql
select * from sourced;
. 'part.hql'
source none.hql
source again.hql
system echo hello
pause 1
help status
\h pause;
? drop
help shell
select * from t where value regexp 'x;' and a =~ /x;/;
select * from t; exit 3
status;
