source again.hql
